// Whether work should go on: the time limit and the caller's wish, asked rarely enough to cost nothing.
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "types.hpp"

namespace dpsvm {

struct Progress {
  Index problem = 0;   // which binary problem of the fit
  Index problems = 1;  // of how many
  std::int64_t iteration = 0;
  double gap = 0.0;
  Index active = 0;   // variables not shrunk
  std::string marks;  // as LIBSVM prints them: . each attempt to shrink, * when all variables are active again
};

// Shared by all threads of one call.
class Watch {
 public:
  // Returns true to stop. Called in the thread that made the Watch only, at most about twenty times a second.
  using Poll = bool (*)(void* context, const Progress& progress);

  Watch(Poll poll, void* context, double seconds)
      : poll_(poll), context_(context), seconds_(seconds), start_(Clock::now()), last_(start_) {}

  std::optional<StopReason> check(const Progress& progress) {
    if (cancelled_) return StopReason::cancelled;
    const Clock::time_point now = Clock::now();
    if (std::this_thread::get_id() != owner_) {
      note(progress, now);
    } else if (poll_ && now - last_ >= std::chrono::milliseconds(50)) {
      last_ = now;
      if (poll_(context_, further(progress, now))) {
        cancelled_ = true;
        return StopReason::cancelled;
      }
    }
    if (std::chrono::duration<double>(now - start_).count() >= seconds_) return StopReason::time_limit;
    return std::nullopt;
  }

 private:
  using Clock = std::chrono::steady_clock;

  void note(const Progress& progress, Clock::time_point now) {
    const std::lock_guard<std::mutex> lock(mutex_);
    other_ = progress;
    noted_ = now;
  }

  // The owner's progress, or what another thread told lately, whichever has more iterations.
  Progress further(const Progress& own, Clock::time_point now) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return now - noted_ < std::chrono::seconds(1) && other_.iteration > own.iteration ? other_ : own;
  }

  Poll poll_;
  void* context_;
  double seconds_;
  Clock::time_point start_, last_;
  std::thread::id owner_ = std::this_thread::get_id();
  std::atomic<bool> cancelled_{false};
  std::mutex mutex_;
  Progress other_;             // of another thread
  Clock::time_point noted_{};  // when
};

// Counts work done and asks the watch after every million or so kernel values or array elements (a few milliseconds).
class Pulse {
 public:
  explicit Pulse(Watch& watch) : watch_(watch) {}

  bool due(std::int64_t work) {
    if ((done_ += work) < kInterval) return false;
    done_ = 0;
    return true;
  }
  std::optional<StopReason> check(const Progress& progress) { return watch_.check(progress); }

 private:
  static constexpr std::int64_t kInterval = 1'000'000;
  Watch& watch_;
  std::int64_t done_ = 0;
};

}  // namespace dpsvm
