// Q4_1: value = scale * code + min.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "quant/block.h"
#include "quant/float_field.h"
#include "quant/nibbles.h"
#include "quant/unpack.h"

namespace kvasir::quant {

struct Q4_1 {
  static constexpr std::string_view kName = "Q4_1";
  static constexpr std::uint32_t kGgufType = 3;
  static constexpr int kBlockElements = 32;
#pragma pack(push, 1)
  struct Block {
    Half scale;
    Half min;
    std::uint8_t nibbles[16];
  };
#pragma pack(pop)
  static_assert(sizeof(Block) == 20);
  static constexpr FloatField kFloats[] = {{offsetof(Block, scale)}, {offsetof(Block, min)}};

  static void codes_of(const Block& block, int, std::uint8_t* codes) { nibbles_of(block.nibbles, codes); }
  static void unpack_row(const void* row, std::int64_t num_elements, float* out) {
    unpack_affine<Q4_1>(row, num_elements, out);
  }
};

}  // namespace kvasir::quant
