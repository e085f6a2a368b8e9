// IQ2_S: as IQ2_XS, with indices of 10 bits into kIq2SGrid and a sign bit for each element. Bits 2 (i % 4), 2 (i % 4)
// + 1 of high_bits[i / 4] are the top bits of index i.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "quant/block.h"
#include "quant/float_field.h"
#include "quant/grids.h"
#include "quant/unpack.h"

namespace kvasir::quant {

struct IQ2_S {
  static constexpr std::string_view kName = "IQ2_S";
  static constexpr std::uint32_t kGgufType = 22;
  static constexpr int kBlockElements = 256;
#pragma pack(push, 1)
  struct Block {
    Half scale;
    std::uint8_t low_indices[32];
    std::uint8_t signs[32];
    std::uint8_t high_bits[8];
    std::uint8_t sub_scales[8];  // two in a byte
  };
#pragma pack(pop)
  static_assert(sizeof(Block) == 82);
  static constexpr FloatField kFloats[] = {{offsetof(Block, scale)}};
  static constexpr int kZeroPoint = kSignedZero;

  static void codes_of(const Block& block, int s, std::uint8_t* codes) {
    for (int i = 0; i < 4; ++i) {
      const int index = block.low_indices[4 * s + i] | (block.high_bits[s] >> 2 * i & 3) << 8;
      put_signed<8>(kIq2SGrid[index], kIq2Magnitudes, block.signs[4 * s + i], codes + 8 * i);
    }
  }
  static float scale_of(const Block& block, int half) {
    const int sub_scale = block.sub_scales[half / 2] >> 4 * (half % 2) & 0x0f;
    return half_to_float(block.scale) * (0.5f + static_cast<float>(sub_scale)) * 0.25f;
  }
  static void unpack_row(const void* row, std::int64_t num_elements, float* out) {
    unpack_scaled<IQ2_S>(row, num_elements, out);
  }
};

}  // namespace kvasir::quant
