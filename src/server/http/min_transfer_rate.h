// How long a peer may take over the bytes of one transfer.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace kvasir::server::http {

// A transfer may take `grace`, and longer as far as it moves `bytes_per_s` or more; what came fast buys no
// silence longer than `grace`.
//
// Thread safety: none.
class MinTransferRate {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  MinTransferRate(std::chrono::milliseconds grace, std::int64_t bytes_per_s)
      : grace_(grace), bytes_per_s_(bytes_per_s) {}

  void begin(TimePoint now) { deadline_ = now + grace_; }
  void moved(std::int64_t num_bytes, TimePoint now) {
    const std::chrono::milliseconds earned(num_bytes * 1000 / bytes_per_s_);
    deadline_ = std::min(deadline_ + earned, now + grace_);
  }
  TimePoint deadline() const { return deadline_; }

 private:
  const std::chrono::milliseconds grace_;
  const std::int64_t bytes_per_s_;
  TimePoint deadline_;
};

}  // namespace kvasir::server::http
