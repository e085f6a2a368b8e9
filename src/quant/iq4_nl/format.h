// IQ4_NL: value = scale * kIq4Values[nibble].
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

struct IQ4_NL {
  static constexpr std::string_view kName = "IQ4_NL";
  static constexpr std::uint32_t kGgufType = 20;
  static constexpr int kBlockElements = 32;
#pragma pack(push, 1)
  struct Block {
    Half scale;
    std::uint8_t nibbles[16];
  };
#pragma pack(pop)
  static_assert(sizeof(Block) == 18);
  static constexpr FloatField kFloats[] = {{offsetof(Block, scale)}};
  static constexpr int kZeroPoint = kIq4Zero;

  static void codes_of(const Block& block, int s, std::uint8_t* codes) {
    (void)s;
    nibbles_of(block.nibbles, codes);
    for (int i = 0; i < 32; ++i) codes[i] = kIq4Codes[codes[i]];
  }
  static float scale_of(const Block& block, int half) {
    (void)half;
    return half_to_float(block.scale);
  }
  static void unpack_row(const void* row, std::int64_t num_elements, float* out) {
    unpack_scaled<IQ4_NL>(row, num_elements, out);
  }
};

}  // namespace kvasir::quant
