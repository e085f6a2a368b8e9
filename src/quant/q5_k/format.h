// Q5_K: as Q4_K with a fifth bit. Bit s of high_bits[i] belongs to element 32 s + i.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "quant/block.h"
#include "quant/float_field.h"
#include "quant/unpack.h"

namespace kvasir::quant {

struct Q5_K {
  static constexpr std::string_view kName = "Q5_K";
  static constexpr std::uint32_t kGgufType = 13;
  static constexpr int kBlockElements = 256;
#pragma pack(push, 1)
  struct Block {
    Half scale;
    Half min_scale;
    std::uint8_t sub_scales_mins[12];  // sub_scale_of, sub_min_of
    std::uint8_t high_bits[32];
    std::uint8_t nibbles[128];
  };
#pragma pack(pop)
  static_assert(sizeof(Block) == 176);
  static constexpr FloatField kFloats[] = {{offsetof(Block, scale)}, {offsetof(Block, min_scale)}};

  static void codes_of(const Block& block, int s, std::uint8_t* codes) {
    const std::uint8_t* nibbles = block.nibbles + 32 * (s / 2);
    const int shift = 4 * (s % 2);
    for (int i = 0; i < 32; ++i) {
      codes[i] = static_cast<std::uint8_t>((nibbles[i] >> shift & 0x0f) | (block.high_bits[i] >> s & 1) << 4);
    }
  }
  static void unpack_row(const void* row, std::int64_t num_elements, float* out) {
    unpack_super_affine<Q5_K>(row, num_elements, out);
  }
};

}  // namespace kvasir::quant
