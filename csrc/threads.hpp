// A pool of threads that belongs to one call. The calling thread works too.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "types.hpp"

namespace dpsvm {

class ThreadPool {
 public:
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls task(k) once for each k in [0, count), in any order and thread; returns when all are done, rethrowing the
  // first exception. `idle`, if given, is called by the waiting caller about twenty times a second. Not reentrant.
  template <class Task>
  void run(Index count, const Task& task, const std::function<void()>& idle = nullptr) {
    if (workers_.empty() || count <= 1) {
      for (Index k = 0; k < count; ++k) task(k);
      return;
    }
    start(
        count, [](const void* t, Index k) { (*static_cast<const Task*>(t))(k); }, &task, idle);
  }

  // Calls task(first, last) for ranges of `step` that together make up [0, n), likewise.
  template <class Task>
  void run_ranges(Index n, Index step, const Task& task) {
    run((n + step - 1) / step, [&](Index k) { task(k * step, std::min(n, (k + 1) * step)); });
  }

 private:
  using Call = void (*)(const void* task, Index k);

  void start(Index count, Call call, const void* task, const std::function<void()>& idle);
  bool join();
  void leave();
  void wait_for_workers(const std::function<void()>& idle);
  void work();   // takes tasks until none is left
  void serve();  // a worker's life
  bool wait_for_job(std::uint64_t seen);

  std::vector<std::thread> workers_;
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::atomic<std::uint64_t> job_{0};  // counts jobs; a change starts the workers
  std::atomic<Index> next_{0};         // next task to take
  std::atomic<int> busy_{0};           // workers in the current job
  bool open_ = false;                  // whether workers may still join it; one that comes late is not waited for
  std::atomic<bool> quit_{false};
  Index count_ = 0;
  Call call_ = nullptr;
  const void* task_ = nullptr;
  std::exception_ptr error_;
};

}  // namespace dpsvm
