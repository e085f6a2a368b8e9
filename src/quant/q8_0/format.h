// Q8_0: value = scale * code, codes signed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "quant/block.h"
#include "quant/float_field.h"
#include "quant/unpack.h"

namespace kvasir::quant {

struct Q8_0 {
  static constexpr std::string_view kName = "Q8_0";
  static constexpr std::uint32_t kGgufType = 8;
  static constexpr int kBlockElements = 32;
#pragma pack(push, 1)
  struct Block {
    Half scale;
    std::int8_t codes[32];
  };
#pragma pack(pop)
  static_assert(sizeof(Block) == 34);
  static constexpr FloatField kFloats[] = {{offsetof(Block, scale)}};
  static constexpr int kZeroPoint = 128;

  static void codes_of(const Block& block, int, std::uint8_t* codes) {
    // Offset by 128, so that every integer format has unsigned codes.
    for (int i = 0; i < 32; ++i) codes[i] = static_cast<std::uint8_t>(block.codes[i]) ^ 0x80;
  }
  static void unpack_row(const void* row, std::int64_t num_elements, float* out) {
    unpack_symmetric<Q8_0>(row, num_elements, out);
  }
};

}  // namespace kvasir::quant
