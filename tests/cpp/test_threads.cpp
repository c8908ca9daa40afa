// Pools whose workers come late to their jobs: every task is done once, and every pool ends.
#include <atomic>
#include <stdexcept>
#include <vector>

#include "check.hpp"
#include "threads.hpp"

using namespace dpsvm;

namespace {

void does_every_task_once(ThreadPool& pool, Index count) {
  std::vector<std::atomic<int>> done(static_cast<std::size_t>(count));
  pool.run(count, [&](Index k) { ++done[static_cast<std::size_t>(k)]; });
  for (const std::atomic<int>& one : done) CHECK_EQUAL(one.load(), 1);
}

// A pool ends while its workers may still be on their way to its only job.
void a_pool_ends_however_late_its_workers_are() {
  for (int k = 0; k < 3000; ++k) {
    ThreadPool pool(4);
    does_every_task_once(pool, 2);
  }
}

void a_pool_may_end_without_a_job() {
  for (int k = 0; k < 200; ++k) ThreadPool pool(4);
}

void an_exception_reaches_the_caller_and_the_pool_goes_on() {
  ThreadPool pool(4);
  for (int k = 0; k < 100; ++k) {
    CHECK_THROWS(pool.run(8,
                          [](Index i) {
                            if (i == 3) throw std::runtime_error("three");
                          }),
                 std::runtime_error);
    does_every_task_once(pool, 8);
  }
}

}  // namespace

int main() {
  a_pool_ends_however_late_its_workers_are();
  a_pool_may_end_without_a_job();
  an_exception_reaches_the_caller_and_the_pool_goes_on();
  return check::result();
}
