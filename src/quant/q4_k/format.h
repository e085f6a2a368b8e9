// Q4_K: value = (scale * sub_scale[s]) * code - (min_scale * sub_min[s]), s = element / 32.
//
// Nibble byte 32 p + i holds element 64 p + i low and element 64 p + 32 + i high.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "quant/block.h"
#include "quant/float_field.h"
#include "quant/unpack.h"

namespace kvasir::quant {

struct Q4_K {
  static constexpr std::string_view kName = "Q4_K";
  static constexpr std::uint32_t kGgufType = 12;
  static constexpr int kBlockElements = 256;
#pragma pack(push, 1)
  struct Block {
    Half scale;
    Half min_scale;
    std::uint8_t sub_scales_mins[12];  // sub_scale_of, sub_min_of
    std::uint8_t nibbles[128];
  };
#pragma pack(pop)
  static_assert(sizeof(Block) == 144);
  static constexpr FloatField kFloats[] = {{offsetof(Block, scale)}, {offsetof(Block, min_scale)}};

  static void codes_of(const Block& block, int s, std::uint8_t* codes) {
    const std::uint8_t* nibbles = block.nibbles + 32 * (s / 2);
    const int shift = 4 * (s % 2);
    for (int i = 0; i < 32; ++i) codes[i] = nibbles[i] >> shift & 0x0f;
  }
  static void unpack_row(const void* row, std::int64_t num_elements, float* out) {
    unpack_super_affine<Q4_K>(row, num_elements, out);
  }
};

}  // namespace kvasir::quant
