// TQ2_0: value = scale * (code - 1). Bits 2 c, 2 c + 1 of bits[32 h + i] belong to element 128 h + 32 c + i.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "quant/block.h"
#include "quant/float_field.h"
#include "quant/unpack.h"

namespace kvasir::quant {

struct TQ2_0 {
  static constexpr std::string_view kName = "TQ2_0";
  static constexpr std::uint32_t kGgufType = 35;
  static constexpr int kBlockElements = 256;
#pragma pack(push, 1)
  struct Block {
    std::uint8_t bits[64];
    Half scale;
  };
#pragma pack(pop)
  static_assert(sizeof(Block) == 66);
  static constexpr FloatField kFloats[] = {{offsetof(Block, scale)}};
  static constexpr int kZeroPoint = 1;

  static void codes_of(const Block& block, int s, std::uint8_t* codes) {
    const std::uint8_t* bits = block.bits + 32 * (s / 4);
    for (int i = 0; i < 32; ++i) codes[i] = bits[i] >> 2 * (s % 4) & 3;
  }
  static float scale_of(const Block& block, int half) {
    (void)half;
    return half_to_float(block.scale);
  }
  static void unpack_row(const void* row, std::int64_t num_elements, float* out) {
    unpack_scaled<TQ2_0>(row, num_elements, out);
  }
};

}  // namespace kvasir::quant
