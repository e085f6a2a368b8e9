// Q1_0: value = scale * (2 bit - 1). Bit i % 8 of bits[i / 8] belongs to element i.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "quant/block.h"
#include "quant/float_field.h"
#include "quant/unpack.h"

namespace kvasir::quant {

struct Q1_0 {
  static constexpr std::string_view kName = "Q1_0";
  static constexpr std::uint32_t kGgufType = 41;
  static constexpr int kBlockElements = 128;
#pragma pack(push, 1)
  struct Block {
    Half scale;
    std::uint8_t bits[16];
  };
#pragma pack(pop)
  static_assert(sizeof(Block) == 18);
  static constexpr FloatField kFloats[] = {{offsetof(Block, scale)}};
  static constexpr int kZeroPoint = 1;

  static void codes_of(const Block& block, int s, std::uint8_t* codes) {
    for (int i = 0; i < 32; ++i) {
      codes[i] = static_cast<std::uint8_t>((block.bits[4 * s + i / 8] >> i % 8 & 1) * 2);
    }
  }
  static float scale_of(const Block& block, int half) {
    (void)half;
    return half_to_float(block.scale);
  }
  static void unpack_row(const void* row, std::int64_t num_elements, float* out) {
    unpack_scaled<Q1_0>(row, num_elements, out);
  }
};

}  // namespace kvasir::quant
