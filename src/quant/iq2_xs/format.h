// IQ2_XS: value = (scale * (sub_scale[element / 16] + 0.5) / 4) * +-magnitude. A word has 9 bits of index into
// kIq2XsGrid and 7 bits of signs (signs_of).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "quant/block.h"
#include "quant/float_field.h"
#include "quant/grids.h"
#include "quant/unpack.h"

namespace kvasir::quant {

struct IQ2_XS {
  static constexpr std::string_view kName = "IQ2_XS";
  static constexpr std::uint32_t kGgufType = 17;
  static constexpr int kBlockElements = 256;
#pragma pack(push, 1)
  struct Block {
    Half scale;
    std::uint16_t indices_and_signs[32];
    std::uint8_t sub_scales[8];  // two in a byte
  };
#pragma pack(pop)
  static_assert(sizeof(Block) == 74);
  static constexpr FloatField kFloats[] = {{offsetof(Block, scale)}};
  static constexpr int kZeroPoint = kSignedZero;

  static void codes_of(const Block& block, int s, std::uint8_t* codes) {
    for (int i = 0; i < 4; ++i) {
      const std::uint16_t word = block.indices_and_signs[4 * s + i];
      put_signed<8>(kIq2XsGrid[word & 511], kIq2Magnitudes, signs_of(word >> 9), codes + 8 * i);
    }
  }
  static float scale_of(const Block& block, int half) {
    const int sub_scale = block.sub_scales[half / 2] >> 4 * (half % 2) & 0x0f;
    return half_to_float(block.scale) * (0.5f + static_cast<float>(sub_scale)) * 0.25f;
  }
  static void unpack_row(const void* row, std::int64_t num_elements, float* out) {
    unpack_scaled<IQ2_XS>(row, num_elements, out);
  }
};

}  // namespace kvasir::quant
