// Tells the operator that requests are refused, at most once a second.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string_view>
#include <utility>

namespace kvasir::server::observe {

// Thread safety: all calls.
class RefusalLog {
 public:
  using Clock = std::chrono::steady_clock;
  // Takes one line without a line break.
  using Warn = std::function<void(std::string_view line)>;
  explicit RefusalLog(Warn warn) : warn_(std::move(warn)) {}

  // `reason` as the client gets it. A line has the newest reason, and how many were refused since the last line.
  void note(std::string_view reason, Clock::time_point now);

 private:
  const Warn warn_;
  std::mutex mutex_;
  Clock::time_point told_at_{};  // guarded by mutex_, as are the rest
  bool has_told_ = false;
  std::int64_t num_untold_ = 0;
};

}  // namespace kvasir::server::observe
