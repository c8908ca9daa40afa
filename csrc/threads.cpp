#include "threads.hpp"

#include <algorithm>
#include <chrono>
#include <system_error>

namespace dpsvm {

namespace {

// How often a thread looks before it sleeps: two kernel rows may follow each other closely.
constexpr int kSpins = 20000;

constexpr std::chrono::milliseconds kIdle{50};

// More threads than this only wait for each other.
constexpr int kMostPerCore = 4;

// Pauses, and now and then lets another thread have the core: there may be more threads than cores.
inline void relax(int spin) {
  if (spin % 64 == 63) return std::this_thread::yield();
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

}  // namespace

ThreadPool::ThreadPool(int threads) {
  const int most = kMostPerCore * std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  threads = std::min(threads, most);
  try {
    for (int i = 1; i < threads; ++i) workers_.emplace_back([this] { serve(); });
  } catch (const std::system_error&) {
    // The system grants no more threads: work with those there are. Results do not depend on their number.
  }
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    quit_ = true;
    ++job_;
  }
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::start(Index count, Call call, const void* task, const std::function<void()>& idle) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    count_ = count;
    call_ = call;
    task_ = task;
    error_ = nullptr;
    next_ = 0;
    open_ = true;
    ++job_;
  }
  wake_.notify_all();
  work();
  wait_for_workers(idle);
  if (error_) std::rethrow_exception(error_);
}

void ThreadPool::wait_for_workers(const std::function<void()>& idle) {
  std::unique_lock<std::mutex> lock(mutex_);
  open_ = false;
  lock.unlock();
  for (int spin = 0; spin < kSpins && busy_ > 0; ++spin) relax(spin);
  lock.lock();
  while (!done_.wait_for(lock, kIdle, [this] { return busy_ == 0; })) {
    if (!idle) continue;
    lock.unlock();
    idle();
    lock.lock();
  }
}

void ThreadPool::work() {
  for (Index k; (k = next_.fetch_add(1)) < count_;) {
    try {
      call_(task_, k);
    } catch (...) {
      std::lock_guard<std::mutex> lock(mutex_);
      if (!error_) error_ = std::current_exception();
      next_ = count_;
    }
  }
}

// A worker that is late may take the count of the end of the pool for that of its job, so the count alone does not tell
// it that there is nothing left to wait for.
bool ThreadPool::wait_for_job(std::uint64_t seen) {
  const auto called = [this, seen] { return quit_ || job_ != seen; };
  for (int spin = 0; spin < kSpins && !called(); ++spin) relax(spin);
  if (!called()) {
    std::unique_lock<std::mutex> lock(mutex_);
    wake_.wait(lock, called);
  }
  return !quit_;
}

bool ThreadPool::join() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (open_) ++busy_;
  return open_;
}

void ThreadPool::leave() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (--busy_ == 0) done_.notify_one();
}

void ThreadPool::serve() {
  for (std::uint64_t seen = 0; wait_for_job(seen);) {
    seen = job_;
    if (!join()) continue;
    work();
    leave();
  }
}

}  // namespace dpsvm
