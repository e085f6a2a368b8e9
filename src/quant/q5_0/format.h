// Q5_0: value = scale * (code - 16).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "quant/block.h"
#include "quant/float_field.h"
#include "quant/nibbles.h"
#include "quant/unpack.h"

namespace kvasir::quant {

struct Q5_0 {
  static constexpr std::string_view kName = "Q5_0";
  static constexpr std::uint32_t kGgufType = 6;
  static constexpr int kBlockElements = 32;
#pragma pack(push, 1)
  struct Block {
    Half scale;
    std::uint8_t high_bits[4];
    std::uint8_t nibbles[16];
  };
#pragma pack(pop)
  static_assert(sizeof(Block) == 22);
  static constexpr FloatField kFloats[] = {{offsetof(Block, scale)}};
  static constexpr int kZeroPoint = 16;

  static void codes_of(const Block& block, int, std::uint8_t* codes) {
    nibbles_of(block.nibbles, codes);
    add_fifth_bits(block.high_bits, codes);
  }
  static void unpack_row(const void* row, std::int64_t num_elements, float* out) {
    unpack_symmetric<Q5_0>(row, num_elements, out);
  }
};

}  // namespace kvasir::quant
