// IQ4_XS: value = (scale * (sub_scale[element / 32] - 32)) * kIq4Values[nibble].
//
// Sub-scale s has its low nibble in low_scales[s / 2] and its top two bits at bit 2 s of high_scales.
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

struct IQ4_XS {
  static constexpr std::string_view kName = "IQ4_XS";
  static constexpr std::uint32_t kGgufType = 23;
  static constexpr int kBlockElements = 256;
#pragma pack(push, 1)
  struct Block {
    Half scale;
    std::uint16_t high_scales;
    std::uint8_t low_scales[4];
    std::uint8_t nibbles[128];  // 16 bytes for 32 elements, as IQ4_NL's
  };
#pragma pack(pop)
  static_assert(sizeof(Block) == 136);
  static constexpr FloatField kFloats[] = {{offsetof(Block, scale)}};
  static constexpr int kZeroPoint = kIq4Zero;

  static void codes_of(const Block& block, int s, std::uint8_t* codes) {
    nibbles_of(block.nibbles + 16 * s, codes);
    for (int i = 0; i < 32; ++i) codes[i] = kIq4Codes[codes[i]];
  }
  // The sub-scale of elements 32 s .. 32 s + 31.
  static int sub_scale_of(const Block& block, int s) {
    const int low = block.low_scales[s / 2] >> 4 * (s % 2) & 0x0f;
    const int high = block.high_scales >> 2 * s & 3;
    return (low | high << 4) - 32;
  }
  static float scale_of(const Block& block, int half) {
    return half_to_float(block.scale) * static_cast<float>(sub_scale_of(block, half / 2));
  }
  static void unpack_row(const void* row, std::int64_t num_elements, float* out) {
    unpack_scaled<IQ4_XS>(row, num_elements, out);
  }
};

}  // namespace kvasir::quant
