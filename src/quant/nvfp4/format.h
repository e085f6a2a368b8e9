// NVFP4: value = scale[element / 16] * E2M1 number. Codes stand for doubled numbers, as MXFP4's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "quant/block.h"
#include "quant/float_field.h"
#include "quant/nibble_tables.h"
#include "quant/unpack.h"

namespace kvasir::quant {

struct NVFP4 {
  static constexpr std::string_view kName = "NVFP4";
  static constexpr std::uint32_t kGgufType = 40;
  static constexpr int kBlockElements = 64;
#pragma pack(push, 1)
  struct Block {
    std::uint8_t scales[4];      // E4M3 without a sign; 127 is NaN
    std::uint8_t nibbles[4][8];  // element i of 16 is low in byte i, element i + 8 high
  };
#pragma pack(pop)
  static_assert(sizeof(Block) == 36);
  static constexpr FloatField kFloats[] = {
      {0, FloatKind::kUE4M3}, {1, FloatKind::kUE4M3}, {2, FloatKind::kUE4M3}, {3, FloatKind::kUE4M3}};
  static constexpr int kZeroPoint = kE2m1Zero;

  static void codes_of(const Block& block, int s, std::uint8_t* codes) {
    for (int i = 0; i < 32; ++i) {
      const std::uint8_t both = block.nibbles[2 * s + i / 16][i % 8];
      codes[i] = kE2m1Codes[both >> (i % 16 < 8 ? 0 : 4) & 0x0f];
    }
  }
  static float scale_of(const Block& block, int half) { return 0.5f * ue4m3_to_float(block.scales[half]); }
  static void unpack_row(const void* row, std::int64_t num_elements, float* out) {
    unpack_scaled<NVFP4>(row, num_elements, out);
  }
};

}  // namespace kvasir::quant
