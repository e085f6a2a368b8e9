// Follows the frames of one direction of an HTTP/2 connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kvasir::server::carriers {

// RFC 9113, 6.
enum class FrameType : std::uint8_t {
  kData = 0,
  kHeaders = 1,
  kReset = 3,
  kWindowUpdate = 8,
};

struct Frame {
  FrameType type{};
  std::uint8_t flags = 0;
  std::uint32_t num_bytes = 0;  // of its payload
  std::uint32_t stream = 0;
  std::uint32_t error = 0;  // of a reset

  // The flag of frames that end a stream: kData and kHeaders.
  bool ends_stream() const { return (flags & 1) != 0; }
};

enum class FrameVerdict : std::uint8_t { kPass, kWait, kRefuse };

// Finds the bytes that may be passed on: whole heads of frames that were let through, and what belongs to them.
//
// Thread safety: none.
class FrameScanner {
 public:
  static constexpr std::size_t kHeadBytes = 9;
  static constexpr std::size_t kPrefaceBytes = 24;  // of a client (RFC 9113, 3.4)

  // `num_first_bytes` are no frame.
  explicit FrameScanner(std::size_t num_first_bytes = 0) : left_(num_first_bytes) {}

  struct Scanned {
    std::size_t num_passed = 0;
    FrameVerdict verdict = FrameVerdict::kPass;  // of the frame that follows; kPass: its head is not all there
  };
  // The bytes behind the passed ones must come again, as the first of the next call. `judge` takes a Frame and gives
  // a verdict; it is asked again after kWait.
  template <class Judge>
  Scanned scan(std::string_view bytes, Judge judge) {
    std::size_t at = 0;
    for (;;) {
      const std::size_t num_taken = left_ < bytes.size() - at ? left_ : bytes.size() - at;
      at += num_taken;
      left_ -= num_taken;
      if (left_ > 0 || !has_frame(bytes.substr(at))) return {.num_passed = at};
      const Frame frame = frame_at(bytes.substr(at));
      const FrameVerdict verdict = judge(frame);
      if (verdict != FrameVerdict::kPass) return {.num_passed = at, .verdict = verdict};
      left_ = kHeadBytes + frame.num_bytes;
    }
  }
  // Whether all that was passed ends with a frame.
  bool is_between_frames() const { return left_ == 0; }

 private:
  static bool has_frame(std::string_view bytes);
  static Frame frame_at(std::string_view bytes);

  std::size_t left_;  // to pass on unseen
};

}  // namespace kvasir::server::carriers
