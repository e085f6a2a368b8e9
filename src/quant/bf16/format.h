// BF16: the upper half of a binary32.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/half.h"
#include "quant/block.h"
#include "quant/float_field.h"

namespace kvasir::quant {

struct BF16 {
  static constexpr std::string_view kName = "BF16";
  static constexpr std::uint32_t kGgufType = 30;
  static constexpr int kBlockElements = 1;
  using Block = std::uint16_t;
  static constexpr FloatField kFloats[] = {{0, FloatKind::kBF16}};

  static void unpack_row(const void* row, std::int64_t num_elements, float* out) {
    for (std::int64_t i = 0; i < num_elements; ++i) out[i] = bf16_to_float(block_at<Block>(row, i));
  }
};

}  // namespace kvasir::quant
