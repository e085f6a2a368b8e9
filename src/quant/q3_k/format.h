// Q3_K: value = (scale * (sub_scale[element / 16] - 32)) * (code - 4).
//
// Bits 2 c, 2 c + 1 of low_bits[32 h + i] are the low bits of element 128 h + 32 c + i (c = 0..3), and bit s of
// high_bits[i] is the third bit of element 32 s + i.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "quant/block.h"
#include "quant/float_field.h"
#include "quant/unpack.h"

namespace kvasir::quant {

struct Q3_K {
  static constexpr std::string_view kName = "Q3_K";
  static constexpr std::uint32_t kGgufType = 11;
  static constexpr int kBlockElements = 256;
#pragma pack(push, 1)
  struct Block {
    std::uint8_t high_bits[32];
    std::uint8_t low_bits[64];
    std::uint8_t sub_scales[12];  // 6 bits each: scale_of
    Half scale;
  };
#pragma pack(pop)
  static_assert(sizeof(Block) == 110);
  static constexpr FloatField kFloats[] = {{offsetof(Block, scale)}};
  static constexpr int kZeroPoint = 4;

  static void codes_of(const Block& block, int s, std::uint8_t* codes) {
    const std::uint8_t* low_bits = block.low_bits + 32 * (s / 4);
    for (int i = 0; i < 32; ++i) {
      codes[i] = static_cast<std::uint8_t>((low_bits[i] >> 2 * (s % 4) & 3) | (block.high_bits[i] >> s & 1)
                                                                                  << 2);
    }
  }
  // The sub-scale of elements 16 half .. 16 half + 15.
  static int sub_scale_of(const Block& block, int half) {
    // The low nibbles are those of bytes 0-7, then their high ones; bytes 8-11 have the top two bits.
    const int low = block.sub_scales[half % 8] >> 4 * (half / 8) & 0x0f;
    const int high = block.sub_scales[8 + half % 4] >> 2 * (half / 4) & 3;
    return (low | high << 4) - 32;
  }
  static float scale_of(const Block& block, int half) {
    return half_to_float(block.scale) * static_cast<float>(sub_scale_of(block, half));
  }
  static void unpack_row(const void* row, std::int64_t num_elements, float* out) {
    unpack_scaled<Q3_K>(row, num_elements, out);
  }
};

}  // namespace kvasir::quant
