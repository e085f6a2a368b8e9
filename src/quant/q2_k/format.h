// Q2_K: value = (scale * sub_scale[element / 16]) * code - min_scale * sub_min[element / 16].
//
// Bits 2 c, 2 c + 1 of bits[32 h + i] belong to element 128 h + 32 c + i (c = 0..3).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/half.h"
#include "quant/block.h"
#include "quant/float_field.h"

namespace kvasir::quant {

struct Q2_K {
  static constexpr std::string_view kName = "Q2_K";
  static constexpr std::uint32_t kGgufType = 10;
  static constexpr int kBlockElements = 256;
#pragma pack(push, 1)
  struct Block {
    std::uint8_t sub_scales_mins[16];  // low and high nibble
    std::uint8_t bits[64];
    Half scale;
    Half min_scale;
  };
#pragma pack(pop)
  static_assert(sizeof(Block) == 84);
  static constexpr FloatField kFloats[] = {{offsetof(Block, scale)}, {offsetof(Block, min_scale)}};

  static void codes_of(const Block& block, int s, std::uint8_t* codes) {
    const std::uint8_t* bits = block.bits + 32 * (s / 4);
    for (int i = 0; i < 32; ++i) codes[i] = bits[i] >> 2 * (s % 4) & 3;
  }
  static void unpack_row(const void* row, std::int64_t num_elements, float* out) {
    for (std::int64_t b = 0; b < num_elements / kBlockElements; ++b) {
      const auto block = block_at<Block>(row, b);
      for (int s = 0; s < kBlockElements / kCodesOfBlock; ++s, out += kCodesOfBlock) {
        std::uint8_t codes[kCodesOfBlock];
        codes_of(block, s, codes);
        for (int i = 0; i < kCodesOfBlock; ++i) {
          const std::uint8_t sub = block.sub_scales_mins[2 * s + i / 16];
          const float scale = half_to_float(block.scale) * static_cast<float>(sub & 0x0f);
          out[i] = scale * static_cast<float>(codes[i]) -
                   half_to_float(block.min_scale) * static_cast<float>(sub >> 4);
        }
      }
    }
  }
};

}  // namespace kvasir::quant
