// Calls whose message does not come.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <unordered_map>

#include "server/http/min_transfer_rate.h"

namespace kvasir::server::carriers {

// The calls of one connection whose client has not ended its side and whose answer has not begun: each has the time
// of a request's body. A call that is answered already may leave its side open, as reflection does.
//
// Thread safety: none.
class LateMessages {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  explicit LateMessages(http::MinTransferRate rate) : rate_(rate) {}

  void begin(std::uint32_t stream, TimePoint now) {
    http::MinTransferRate rate = rate_;
    rate.begin(now);
    first_deadline_ = std::min(first_deadline_, rate.deadline());
    waiting_.emplace(stream, rate);
  }
  void moved(std::uint32_t stream, std::uint32_t num_bytes, TimePoint now) {
    const auto found = waiting_.find(stream);
    if (found != waiting_.end()) found->second.moved(num_bytes, now);
  }
  // The message is there, or nobody waits for it.
  void end(std::uint32_t stream) { waiting_.erase(stream); }

  bool are_awaited() const { return !waiting_.empty(); }
  // The stream of the message that is late for the longest; nothing: none is late.
  std::optional<std::uint32_t> late(TimePoint now) {
    if (now < first_deadline_) return std::nullopt;
    const auto first = std::ranges::min_element(waiting_, {}, [](const auto& call) { return call.second.deadline(); });
    first_deadline_ = first == waiting_.end() ? TimePoint::max() : first->second.deadline();
    if (now < first_deadline_) return std::nullopt;
    return first->first;
  }
  // Where one is late: since when.
  TimePoint first_deadline() const { return first_deadline_; }

 private:

  const http::MinTransferRate rate_;
  std::unordered_map<std::uint32_t, http::MinTransferRate> waiting_;
  TimePoint first_deadline_ = TimePoint::max();  // or earlier than that
};

}  // namespace kvasir::server::carriers
