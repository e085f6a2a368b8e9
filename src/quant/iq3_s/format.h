// IQ3_S: value = (scale * (1 + 2 sub_scale[element / 32])) * +-magnitude, with four magnitudes to an index of 9 bits into
// kIq3SGrid. Bit i % 8 of high_bits[i / 8] is the top bit of index i.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "quant/block.h"
#include "quant/float_field.h"
#include "quant/grids.h"
#include "quant/unpack.h"

namespace kvasir::quant {

struct IQ3_S {
  static constexpr std::string_view kName = "IQ3_S";
  static constexpr std::uint32_t kGgufType = 21;
  static constexpr int kBlockElements = 256;
#pragma pack(push, 1)
  struct Block {
    Half scale;
    std::uint8_t low_indices[64];
    std::uint8_t high_bits[8];
    std::uint8_t signs[32];
    std::uint8_t sub_scales[4];  // two in a byte
  };
#pragma pack(pop)
  static_assert(sizeof(Block) == 110);
  static constexpr FloatField kFloats[] = {{offsetof(Block, scale)}};
  static constexpr int kZeroPoint = kSignedZero;

  static void codes_of(const Block& block, int s, std::uint8_t* codes) {
    for (int i = 0; i < 8; ++i) {
      const int index = block.low_indices[8 * s + i] | (block.high_bits[s] >> i & 1) << 8;
      put_signed<4>(kIq3SGrid[index], kIq3SMagnitudes, block.signs[4 * s + i / 2] >> 4 * (i % 2),
                    codes + 4 * i);
    }
  }
  static float scale_of(const Block& block, int half) {
    const int sub_scale = block.sub_scales[half / 4] >> 4 * (half / 2 % 2) & 0x0f;
    return half_to_float(block.scale) * static_cast<float>(1 + 2 * sub_scale);
  }
  static void unpack_row(const void* row, std::int64_t num_elements, float* out) {
    unpack_scaled<IQ3_S>(row, num_elements, out);
  }
};

}  // namespace kvasir::quant
