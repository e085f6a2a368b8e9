// The block structs of the GGUF weight formats, byte for byte as they lie in a file.
//
// A row is a sequence of blocks. Blocks are packed without padding, so a struct may start at any address:
// read one from a file with std::memcpy (block_at), never through a cast.
#pragma once

#include <cstdint>
#include <cstring>

#include "tensor/dtype.h"

namespace kvasir::quant {

inline constexpr int kBlockElements = 32;
inline constexpr int kSuperBlockElements = 256;
inline constexpr int kSubBlocks = kSuperBlockElements / kBlockElements;

using Half = std::uint16_t;  // bits of an IEEE binary16

#pragma pack(push, 1)

// value = scale * code
struct BlockQ8_0 {
  static constexpr DType kDType = DType::kQ8_0;
  Half scale;
  std::int8_t codes[32];
};

// value = scale * (code - 8). Byte i holds element i in its low nibble and element i + 16 in its high one; so
// do all 32-element formats below.
struct BlockQ4_0 {
  static constexpr DType kDType = DType::kQ4_0;
  Half scale;
  std::uint8_t nibbles[16];
};

// value = scale * code + min
struct BlockQ4_1 {
  static constexpr DType kDType = DType::kQ4_1;
  Half scale;
  Half min;
  std::uint8_t nibbles[16];
};

// value = scale * (code - 16). Bit i of `high_bits` (little endian) is bit 4 of element i's code.
struct BlockQ5_0 {
  static constexpr DType kDType = DType::kQ5_0;
  Half scale;
  std::uint8_t high_bits[4];
  std::uint8_t nibbles[16];
};

// value = scale * code + min
struct BlockQ5_1 {
  static constexpr DType kDType = DType::kQ5_1;
  Half scale;
  Half min;
  std::uint8_t high_bits[4];
  std::uint8_t nibbles[16];
};

// value = (scale * sub_scale[s]) * code - (min_scale * sub_min[s]), s = element / 32. Sub-scales and
// sub-minima are 6 bits each, packed (sub_scale_of, sub_min_of). Nibble byte 32 p + i holds element 64 p + i
// low and element 64 p + 32 + i high.
struct BlockQ4_K {
  static constexpr DType kDType = DType::kQ4_K;
  Half scale;
  Half min_scale;
  std::uint8_t sub_scales_mins[12];
  std::uint8_t nibbles[128];
};

// As Q4_K with a fifth bit: bit s of high_bits[i] belongs to element 32 s + i.
struct BlockQ5_K {
  static constexpr DType kDType = DType::kQ5_K;
  Half scale;
  Half min_scale;
  std::uint8_t sub_scales_mins[12];
  std::uint8_t high_bits[32];
  std::uint8_t nibbles[128];
};

// value = (scale * sub_scales[element / 16]) * (code - 32). In each half h of 128 elements: nibble byte
// 64 h + 32 p + i holds element 128 h + 32 p + i low and 128 h + 64 + 32 p + i high (p = 0, 1); bits 2 c, 2 c
// + 1 of high_bits[32 h + i] belong to element 128 h + 32 c + i (c = 0..3).
struct BlockQ6_K {
  static constexpr DType kDType = DType::kQ6_K;
  std::uint8_t nibbles[128];
  std::uint8_t high_bits[64];
  std::int8_t sub_scales[16];
  Half scale;
};

#pragma pack(pop)

static_assert(sizeof(BlockQ8_0) == info_of(DType::kQ8_0).block_bytes);
static_assert(sizeof(BlockQ4_0) == info_of(DType::kQ4_0).block_bytes);
static_assert(sizeof(BlockQ4_1) == info_of(DType::kQ4_1).block_bytes);
static_assert(sizeof(BlockQ5_0) == info_of(DType::kQ5_0).block_bytes);
static_assert(sizeof(BlockQ5_1) == info_of(DType::kQ5_1).block_bytes);
static_assert(sizeof(BlockQ4_K) == info_of(DType::kQ4_K).block_bytes);
static_assert(sizeof(BlockQ5_K) == info_of(DType::kQ5_K).block_bytes);
static_assert(sizeof(BlockQ6_K) == info_of(DType::kQ6_K).block_bytes);

// Block `index` of a row in file layout.
template <class Block>
Block block_at(const void* row, std::int64_t index) {
  Block block;
  std::memcpy(&block, static_cast<const char*>(row) + index * static_cast<std::int64_t>(sizeof(Block)),
              sizeof(Block));
  return block;
}

}  // namespace kvasir::quant
