// TQ1_0: value = scale * (digit - 1), with five digits of base 3 in a byte.
//
// A byte is a fraction of 256, and its digits are those of the fraction, the first one most significant. Bytes 0-31 hold
// elements 32 n + i, bytes 32-47 elements 160 + 16 n + i, and bytes 48-51 elements 240 + 4 n + i (n: the digit).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "quant/block.h"
#include "quant/float_field.h"
#include "quant/unpack.h"

namespace kvasir::quant {

struct TQ1_0 {
  static constexpr std::string_view kName = "TQ1_0";
  static constexpr std::uint32_t kGgufType = 34;
  static constexpr int kBlockElements = 256;
#pragma pack(push, 1)
  struct Block {
    std::uint8_t digits[52];
    Half scale;
  };
#pragma pack(pop)
  static_assert(sizeof(Block) == 54);
  static constexpr FloatField kFloats[] = {{offsetof(Block, scale)}};
  static constexpr int kZeroPoint = 1;

  static void codes_of(const Block& block, int s, std::uint8_t* codes) {
    constexpr std::uint8_t kPowers[] = {1, 3, 9, 27, 81};
    for (int i = 0; i < 32; ++i) {
      const int element = 32 * s + i;
      const int run = element < 160 ? 0 : element < 240 ? 1 : 2;
      constexpr int kFirstElement[] = {0, 160, 240}, kFirstByte[] = {0, 32, 48}, kBytes[] = {32, 16, 4};
      const int at = element - kFirstElement[run];
      const std::uint8_t byte = block.digits[kFirstByte[run] + at % kBytes[run]];
      const auto rest = static_cast<std::uint8_t>(byte * kPowers[at / kBytes[run]]);
      codes[i] = static_cast<std::uint8_t>(rest * 3 >> 8);
    }
  }
  static float scale_of(const Block& block, int half) {
    (void)half;
    return half_to_float(block.scale);
  }
  static void unpack_row(const void* row, std::int64_t num_elements, float* out) {
    unpack_scaled<TQ1_0>(row, num_elements, out);
  }
};

}  // namespace kvasir::quant
