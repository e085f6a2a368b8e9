// IQ3_XXS: value = (scale * (sub_scale[element / 32] + 0.5) / 2) * +-magnitude, with four magnitudes to an index of
// kIq3XxsGrid. A number for 32 elements has 7 bits of signs for eight of them (signs_of), then 4 bits of sub-scale.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "quant/block.h"
#include "quant/float_field.h"
#include "quant/grids.h"
#include "quant/unpack.h"

namespace kvasir::quant {

struct IQ3_XXS {
  static constexpr std::string_view kName = "IQ3_XXS";
  static constexpr std::uint32_t kGgufType = 18;
  static constexpr int kBlockElements = 256;
#pragma pack(push, 1)
  struct Block {
    Half scale;
    std::uint8_t indices[64];
    std::uint32_t signs_and_scales[8];
  };
#pragma pack(pop)
  static_assert(sizeof(Block) == 98);
  static constexpr FloatField kFloats[] = {{offsetof(Block, scale)}};
  static constexpr int kZeroPoint = kSignedZero;

  static void codes_of(const Block& block, int s, std::uint8_t* codes) {
    for (int i = 0; i < 4; ++i) {
      const std::uint8_t* indices = block.indices + 8 * s + 2 * i;
      const unsigned signs = signs_of(block.signs_and_scales[s] >> 7 * i);
      put_signed<4>(kIq3XxsGrid[indices[0]], kIq3XxsMagnitudes, signs, codes + 8 * i);
      put_signed<4>(kIq3XxsGrid[indices[1]], kIq3XxsMagnitudes, signs >> 4, codes + 8 * i + 4);
    }
  }
  static float scale_of(const Block& block, int half) {
    const std::uint32_t sub_scale = block.signs_and_scales[half / 2] >> 28;
    return half_to_float(block.scale) * (0.5f + static_cast<float>(sub_scale)) * 0.5f;
  }
  static void unpack_row(const void* row, std::int64_t num_elements, float* out) {
    unpack_scaled<IQ3_XXS>(row, num_elements, out);
  }
};

}  // namespace kvasir::quant
