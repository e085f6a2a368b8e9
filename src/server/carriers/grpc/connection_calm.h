// Bounds what one HTTP/2 connection may ask for at no cost of its own.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <unordered_set>

#include "server/carriers/grpc/abandoned_calls.h"
#include "server/carriers/grpc/frame_scanner.h"
#include "server/carriers/grpc/late_messages.h"

namespace kvasir::server::carriers {

// Resets count from either side: a client can make the server reset its streams too (CVE-2023-44487,
// CVE-2025-8671). Frames that carry nothing count apart: PING, SETTINGS, PRIORITY, CONTINUATION, empty DATA, and
// resets of streams that are over. WINDOW_UPDATE is free: streams need many, and no answer is made to it.
//
// Thread safety: none.
class ConnectionCalm {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  static constexpr std::int64_t kMaxEmptyFrames = 1000;  // in kSeconds
  static constexpr double kSeconds = 10.0;

  // gRPC keeps the limit of streams itself, but only of a client that has acknowledged it: twice as many are too
  // many whatever it said. `abandoned` outlives this.
  // `message_rate` is that of a call's message.
  ConnectionCalm(std::int64_t max_resets, std::int64_t max_streams, http::MinTransferRate message_rate,
                 AbandonedCalls& abandoned, TimePoint now)
      : resets_{max_resets, now},
        empty_frames_{kMaxEmptyFrames, now},
        max_streams_(static_cast<std::size_t>(2 * max_streams)),
        messages_(message_rate),
        abandoned_(abandoned) {}

  // Judges the client's frame. kRefuse: there are too many; kWait: no call may begin yet, or one is to be ended
  // first (messages()).
  FrameVerdict take(const Frame& frame, TimePoint now);
  // The server's frame goes out. kPass, or kRefuse.
  FrameVerdict sent(const Frame& frame, TimePoint now);
  // The connection is over: its streams are abandoned.
  void end(TimePoint now);

  LateMessages& messages() { return messages_; }
  std::uint32_t last_stream() const { return last_stream_; }

 private:
  // A bucket that kSeconds fill.
  struct Allowance {
    std::int64_t max;
    TimePoint filled_at;
    double left = static_cast<double>(max);

    bool take(TimePoint now);
  };

  FrameVerdict judge(const Frame& frame, TimePoint now);
  FrameVerdict open(const Frame& frame, TimePoint now);
  FrameVerdict reset(std::uint32_t stream, TimePoint now);

  Allowance resets_, empty_frames_;
  const std::size_t max_streams_;
  LateMessages messages_;
  AbandonedCalls& abandoned_;
  std::unordered_set<std::uint32_t> streams_;  // that the server has not ended
  std::uint32_t last_stream_ = 0;
};

}  // namespace kvasir::server::carriers
