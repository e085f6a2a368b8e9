// The unsigned integer codes and sub-scales inside a block: the one place that knows how a format's bits are
// strewn. Unpacking to float and packing for kernels both start from these.
//
// codes_of(block, s, codes) writes the 32 codes of elements 32 s .. 32 s + 31 in element order. Formats of 32
// elements have s = 0 only.
#pragma once

#include <cstdint>

#include "quant/layout.h"

namespace kvasir::quant {

// The code that stands for zero in formats without a minimum.
constexpr int zero_point_of(DType dtype) {
  switch (dtype) {
    case DType::kQ4_0:
      return 8;
    case DType::kQ5_0:
      return 16;
    case DType::kQ6_K:
      return 32;
    case DType::kQ8_0:
      return 128;
    default:
      return 0;
  }
}

inline void nibbles_of(const std::uint8_t* nibbles, std::uint8_t* codes) {
  for (int i = 0; i < 16; ++i) {
    codes[i] = nibbles[i] & 0x0f;
    codes[i + 16] = nibbles[i] >> 4;
  }
}

inline void add_fifth_bits(const std::uint8_t* high_bits, std::uint8_t* codes) {
  for (int i = 0; i < 32; ++i) codes[i] |= static_cast<std::uint8_t>((high_bits[i / 8] >> (i % 8) & 1) << 4);
}

inline void codes_of(const BlockQ4_0& block, int, std::uint8_t* codes) { nibbles_of(block.nibbles, codes); }
inline void codes_of(const BlockQ4_1& block, int, std::uint8_t* codes) { nibbles_of(block.nibbles, codes); }

inline void codes_of(const BlockQ5_0& block, int, std::uint8_t* codes) {
  nibbles_of(block.nibbles, codes);
  add_fifth_bits(block.high_bits, codes);
}

inline void codes_of(const BlockQ5_1& block, int, std::uint8_t* codes) {
  nibbles_of(block.nibbles, codes);
  add_fifth_bits(block.high_bits, codes);
}

// Offset by 128, so that every integer format has unsigned codes.
inline void codes_of(const BlockQ8_0& block, int, std::uint8_t* codes) {
  for (int i = 0; i < 32; ++i) codes[i] = static_cast<std::uint8_t>(block.codes[i]) ^ 0x80;
}

inline void codes_of(const BlockQ4_K& block, int s, std::uint8_t* codes) {
  const std::uint8_t* nibbles = block.nibbles + 32 * (s / 2);
  const int shift = 4 * (s % 2);
  for (int i = 0; i < 32; ++i) codes[i] = nibbles[i] >> shift & 0x0f;
}

inline void codes_of(const BlockQ5_K& block, int s, std::uint8_t* codes) {
  const std::uint8_t* nibbles = block.nibbles + 32 * (s / 2);
  const int shift = 4 * (s % 2);
  for (int i = 0; i < 32; ++i) {
    codes[i] = static_cast<std::uint8_t>((nibbles[i] >> shift & 0x0f) | (block.high_bits[i] >> s & 1) << 4);
  }
}

inline void codes_of(const BlockQ6_K& block, int s, std::uint8_t* codes) {
  const int half = s / 4, column = s % 4;
  const std::uint8_t* nibbles = block.nibbles + 64 * half + 32 * (column % 2);
  const std::uint8_t* high_bits = block.high_bits + 32 * half;
  const int shift = 4 * (column / 2);
  for (int i = 0; i < 32; ++i) {
    codes[i] =
        static_cast<std::uint8_t>((nibbles[i] >> shift & 0x0f) | (high_bits[i] >> 2 * column & 3) << 4);
  }
}

// 6-bit sub-scale and sub-minimum s (0..7) of Q4_K and Q5_K. The first four of each are the low bits of bytes
// 0-3 and 4-7; the last four have their low bits in bytes 8-11 and their top two bits above the first four.
inline std::uint8_t sub_scale_of(const std::uint8_t* packed, int s) {
  if (s < 4) return packed[s] & 63;
  return static_cast<std::uint8_t>((packed[s + 4] & 0x0f) | (packed[s - 4] >> 6) << 4);
}

inline std::uint8_t sub_min_of(const std::uint8_t* packed, int s) {
  if (s < 4) return packed[s + 4] & 63;
  return static_cast<std::uint8_t>(packed[s + 4] >> 4 | (packed[s] >> 6) << 4);
}

}  // namespace kvasir::quant
