// Q4_0: value = scale * (code - 8).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "quant/block.h"
#include "quant/float_field.h"
#include "quant/nibbles.h"
#include "quant/unpack.h"

namespace kvasir::quant {

struct Q4_0 {
  static constexpr std::string_view kName = "Q4_0";
  static constexpr std::uint32_t kGgufType = 2;
  static constexpr int kBlockElements = 32;
#pragma pack(push, 1)
  struct Block {
    Half scale;
    std::uint8_t nibbles[16];
  };
#pragma pack(pop)
  static_assert(sizeof(Block) == 18);
  static constexpr FloatField kFloats[] = {{offsetof(Block, scale)}};
  static constexpr int kZeroPoint = 8;

  static void codes_of(const Block& block, int, std::uint8_t* codes) { nibbles_of(block.nibbles, codes); }
  static void unpack_row(const void* row, std::int64_t num_elements, float* out) {
    unpack_symmetric<Q4_0>(row, num_elements, out);
  }
};

}  // namespace kvasir::quant
