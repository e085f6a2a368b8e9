// MXFP4: value = 2^(exponent - 127) * E2M1 number (OCP Microscaling Formats 1.0). Codes stand for doubled numbers,
// so that they are integers, and the scale is half of the block's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "quant/block.h"
#include "quant/float_field.h"
#include "quant/nibble_tables.h"
#include "quant/nibbles.h"
#include "quant/unpack.h"

namespace kvasir::quant {

struct MXFP4 {
  static constexpr std::string_view kName = "MXFP4";
  static constexpr std::uint32_t kGgufType = 39;
  static constexpr int kBlockElements = 32;
#pragma pack(push, 1)
  struct Block {
    std::uint8_t exponent;  // E8M0; 255 is NaN
    std::uint8_t nibbles[16];
  };
#pragma pack(pop)
  static_assert(sizeof(Block) == 17);
  static constexpr FloatField kFloats[] = {{offsetof(Block, exponent), FloatKind::kE8M0}};
  static constexpr int kZeroPoint = kE2m1Zero;

  static void codes_of(const Block& block, int s, std::uint8_t* codes) {
    (void)s;
    nibbles_of(block.nibbles, codes);
    for (int i = 0; i < 32; ++i) codes[i] = kE2m1Codes[codes[i]];
  }
  static float scale_of(const Block& block, int half) {
    (void)half;
    return 0.5f * e8m0_to_float(block.exponent);
  }
  static void unpack_row(const void* row, std::int64_t num_elements, float* out) {
    unpack_scaled<MXFP4>(row, num_elements, out);
  }
};

}  // namespace kvasir::quant
