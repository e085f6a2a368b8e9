// Q2_0: value = scale * (code - 1). Bits 2 (i % 4), 2 (i % 4) + 1 of bits[i / 4] belong to element i.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "quant/block.h"
#include "quant/float_field.h"
#include "quant/unpack.h"

namespace kvasir::quant {

struct Q2_0 {
  static constexpr std::string_view kName = "Q2_0";
  static constexpr std::uint32_t kGgufType = 42;
  static constexpr int kBlockElements = 64;
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
    for (int i = 0; i < 32; ++i) codes[i] = block.bits[8 * s + i / 4] >> 2 * (i % 4) & 3;
  }
  static float scale_of(const Block& block, int half) {
    (void)half;
    return half_to_float(block.scale);
  }
  static void unpack_row(const void* row, std::int64_t num_elements, float* out) {
    unpack_scaled<Q2_0>(row, num_elements, out);
  }
};

}  // namespace kvasir::quant
