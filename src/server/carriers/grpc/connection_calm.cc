#include "server/carriers/grpc/connection_calm.h"

#include <algorithm>

namespace kvasir::server::carriers {
namespace {

// No call has begun. A client that did not know the limit yet may get many (RFC 9113, 7).
constexpr std::uint32_t kRefusedStream = 7;

FrameVerdict unless_too_many(bool is_within) {
  return is_within ? FrameVerdict::kPass : FrameVerdict::kRefuse;
}

}  // namespace

bool ConnectionCalm::Allowance::take(TimePoint now) {
  const double seconds = std::chrono::duration<double>(now - filled_at).count();
  const auto most = static_cast<double>(max);
  left = std::min(most, left + most * seconds / kSeconds);
  filled_at = now;
  if (left < 1.0) return false;
  left -= 1.0;
  return true;
}

FrameVerdict ConnectionCalm::take(const Frame& frame, TimePoint now) {
  if (messages_.late(now)) return FrameVerdict::kWait;
  const FrameVerdict verdict = judge(frame, now);
  if (verdict != FrameVerdict::kPass) return verdict;
  if (frame.type == FrameType::kData) messages_.moved(frame.stream, frame.num_bytes, now);
  const bool may_end = frame.type == FrameType::kHeaders || frame.type == FrameType::kData;
  if (may_end && frame.ends_stream()) messages_.end(frame.stream);
  return verdict;
}

FrameVerdict ConnectionCalm::judge(const Frame& frame, TimePoint now) {
  switch (frame.type) {
    case FrameType::kHeaders:
      return frame.stream > last_stream_ ? open(frame, now) : FrameVerdict::kPass;
    case FrameType::kReset:
      return reset(frame.stream, now);
    case FrameType::kData:
      if (frame.num_bytes > 0 || frame.ends_stream()) return FrameVerdict::kPass;
      break;
    case FrameType::kWindowUpdate:
      return FrameVerdict::kPass;
  }
  return unless_too_many(empty_frames_.take(now));
}

FrameVerdict ConnectionCalm::sent(const Frame& frame, TimePoint now) {
  if (frame.type == FrameType::kReset && frame.error != 0 && frame.error != kRefusedStream) return reset(frame.stream, now);
  const bool may_end = frame.type == FrameType::kHeaders || frame.type == FrameType::kData;
  if (may_end) messages_.end(frame.stream);
  if (frame.type == FrameType::kReset || (may_end && frame.ends_stream())) streams_.erase(frame.stream);
  return FrameVerdict::kPass;
}

FrameVerdict ConnectionCalm::open(const Frame& frame, TimePoint now) {
  if (streams_.size() >= max_streams_) return FrameVerdict::kRefuse;
  if (!abandoned_.are_few(now)) return FrameVerdict::kWait;
  streams_.insert(frame.stream);
  last_stream_ = frame.stream;
  messages_.begin(frame.stream, now);
  return FrameVerdict::kPass;
}

FrameVerdict ConnectionCalm::reset(std::uint32_t stream, TimePoint now) {
  messages_.end(stream);
  if (streams_.erase(stream) == 0) return unless_too_many(empty_frames_.take(now));
  abandoned_.add(1, now);
  return unless_too_many(resets_.take(now));
}

void ConnectionCalm::end(TimePoint now) {
  abandoned_.add(static_cast<std::int64_t>(streams_.size()), now);
  for (const std::uint32_t stream : streams_) messages_.end(stream);
  streams_.clear();
}

}  // namespace kvasir::server::carriers
