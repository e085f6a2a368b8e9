// Calls that their clients gave up, which gRPC still has.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>

namespace kvasir::server::carriers {

// gRPC takes calls faster than it ends those that were reset: it held 27 KiB for each of 20,000 (gRPC 1.51). How
// many it still has nobody tells, so they are taken to end at a rate far below the 10,000 a second that were
// measured. No call begins while there are too many.
//
// Thread safety: any thread.
class AbandonedCalls {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  static constexpr double kMost = 1000.0;  // 27 MiB
  static constexpr double kEndedPerSecond = 1000.0;

  void add(std::int64_t count, TimePoint now) {
    const std::lock_guard lock(mutex_);
    settle(now);
    count_ += static_cast<double>(count);
  }
  bool are_few(TimePoint now) {
    const std::lock_guard lock(mutex_);
    settle(now);
    return count_ < kMost;
  }

 private:
  void settle(TimePoint now) {  // with mutex_ held
    const double ended = kEndedPerSecond * std::chrono::duration<double>(now - settled_at_).count();
    count_ = count_ > ended ? count_ - ended : 0.0;
    settled_at_ = now;
  }

  std::mutex mutex_;
  double count_ = 0.0;
  TimePoint settled_at_{};
};

}  // namespace kvasir::server::carriers
