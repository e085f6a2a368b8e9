// The 6-bit sub-scales and sub-minima of Q4_K and Q5_K, 0 to 7 of each in 12 bytes.
//
// The first four of each are the low bits of bytes 0-3 and 4-7; the last four have their low bits in bytes
// 8-11 and their top two bits above the first four.
#pragma once

#include <cstdint>

namespace kvasir::quant {

inline std::uint8_t sub_scale_of(const std::uint8_t* packed, int s) {
  if (s < 4) return packed[s] & 63;
  return static_cast<std::uint8_t>((packed[s + 4] & 0x0f) | (packed[s - 4] >> 6) << 4);
}

inline std::uint8_t sub_min_of(const std::uint8_t* packed, int s) {
  if (s < 4) return packed[s + 4] & 63;
  return static_cast<std::uint8_t>(packed[s + 4] >> 4 | (packed[s] >> 6) << 4);
}

}  // namespace kvasir::quant
