#include "server/carriers/grpc/frame_scanner.h"

namespace kvasir::server::carriers {
namespace {

std::uint32_t number_at(std::string_view bytes, std::size_t at, std::size_t num_bytes) {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < num_bytes; ++i) number = number << 8 | static_cast<unsigned char>(bytes[at + i]);
  return number;
}

bool is_reset(std::string_view head) {
  return static_cast<FrameType>(head[3]) == FrameType::kReset && number_at(head, 0, 3) == 4;
}

}  // namespace

bool FrameScanner::has_frame(std::string_view bytes) {
  return bytes.size() >= kHeadBytes && (!is_reset(bytes) || bytes.size() >= kHeadBytes + 4);
}

Frame FrameScanner::frame_at(std::string_view bytes) {
  return {.type = static_cast<FrameType>(bytes[3]),
          .flags = static_cast<std::uint8_t>(bytes[4]),
          .num_bytes = number_at(bytes, 0, 3),
          .stream = number_at(bytes, 5, 4) & 0x7fffffff,
          .error = is_reset(bytes) ? number_at(bytes, kHeadBytes, 4) : 0};
}

}  // namespace kvasir::server::carriers
