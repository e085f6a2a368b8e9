// Q6_K: value = (scale * sub_scales[element / 16]) * (code - 32).
//
// In each half h of 128 elements: nibble byte 64 h + 32 p + i holds element 128 h + 32 p + i low and
// 128 h + 64 + 32 p + i high (p = 0, 1); bits 2 c, 2 c + 1 of high_bits[32 h + i] belong to element
// 128 h + 32 c + i (c = 0..3).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/half.h"
#include "quant/block.h"
#include "quant/float_field.h"

namespace kvasir::quant {

struct Q6_K {
  static constexpr std::string_view kName = "Q6_K";
  static constexpr std::uint32_t kGgufType = 14;
  static constexpr int kBlockElements = 256;
#pragma pack(push, 1)
  struct Block {
    std::uint8_t nibbles[128];
    std::uint8_t high_bits[64];
    std::int8_t sub_scales[16];
    Half scale;
  };
#pragma pack(pop)
  static_assert(sizeof(Block) == 210);
  static constexpr FloatField kFloats[] = {{offsetof(Block, scale)}};
  static constexpr int kZeroPoint = 32;

  static void codes_of(const Block& block, int s, std::uint8_t* codes) {
    const int half = s / 4, column = s % 4;
    const std::uint8_t* nibbles = block.nibbles + 64 * half + 32 * (column % 2);
    const std::uint8_t* high_bits = block.high_bits + 32 * half;
    const int shift = 4 * (column / 2);
    for (int i = 0; i < 32; ++i) {
      codes[i] =
          static_cast<std::uint8_t>((nibbles[i] >> shift & 0x0f) | (high_bits[i] >> 2 * column & 3) << 4);
    }
  }
  static void unpack_row(const void* row, std::int64_t num_elements, float* out) {
    for (std::int64_t b = 0; b < num_elements / kBlockElements; ++b) {
      const auto block = block_at<Block>(row, b);
      for (int s = 0; s < kBlockElements / kCodesOfBlock; ++s, out += kCodesOfBlock) {
        std::uint8_t codes[kCodesOfBlock];
        codes_of(block, s, codes);
        for (int i = 0; i < kCodesOfBlock; ++i) {
          const float scale = half_to_float(block.scale) * block.sub_scales[2 * s + i / 16];
          out[i] = scale * static_cast<float>(codes[i] - kZeroPoint);
        }
      }
    }
  }
};

}  // namespace kvasir::quant
