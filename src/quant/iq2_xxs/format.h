// IQ2_XXS: value = (scale * (sub_scale[element / 32] + 0.5) / 4) * +-magnitude, with eight magnitudes to an index.
//
// 32 elements take eight bytes. Four are indices of kIq2XxsGrid, and four are one number: 7 bits of
// signs for each index (signs_of), then 4 bits of sub-scale.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "quant/block.h"
#include "quant/float_field.h"
#include "quant/grids.h"
#include "quant/unpack.h"

namespace kvasir::quant {

struct IQ2_XXS {
  static constexpr std::string_view kName = "IQ2_XXS";
  static constexpr std::uint32_t kGgufType = 16;
  static constexpr int kBlockElements = 256;
#pragma pack(push, 1)
  struct Block {
    Half scale;
    struct {
      std::uint8_t indices[4];
      std::uint32_t signs_and_scale;
    } subs[8];
  };
#pragma pack(pop)
  static_assert(sizeof(Block) == 66);
  static constexpr FloatField kFloats[] = {{offsetof(Block, scale)}};
  static constexpr int kZeroPoint = kSignedZero;

  static void codes_of(const Block& block, int s, std::uint8_t* codes) {
    const auto& sub = block.subs[s];
    for (int i = 0; i < 4; ++i) {
      put_signed<8>(kIq2XxsGrid[sub.indices[i]], kIq2Magnitudes, signs_of(sub.signs_and_scale >> 7 * i),
                    codes + 8 * i);
    }
  }
  static float scale_of(const Block& block, int half) {
    const std::uint32_t sub_scale = block.subs[half / 2].signs_and_scale >> 28;
    return half_to_float(block.scale) * (0.5f + static_cast<float>(sub_scale)) * 0.25f;
  }
  static void unpack_row(const void* row, std::int64_t num_elements, float* out) {
    unpack_scaled<IQ2_XXS>(row, num_elements, out);
  }
};

}  // namespace kvasir::quant
