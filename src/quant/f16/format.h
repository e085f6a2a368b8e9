// F16: IEEE binary16.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

#include "base/half.h"
#include "quant/block.h"
#include "quant/float_field.h"

namespace kvasir::quant {

struct F16 {
  static constexpr std::string_view kName = "F16";
  static constexpr std::uint32_t kGgufType = 1;
  static constexpr int kBlockElements = 1;
  using Block = Half;
  static constexpr FloatField kFloats[] = {{0, FloatKind::kF16}};

  // half_to_float without a branch, so that the compiler makes vector code of a row.
  static float float_of(std::uint32_t bits) {
    const std::uint32_t magnitude = (bits & 0x7fffu) << 13;
    const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int32_t>(bits & 0x3ffu)) * 0x1p-24f);
    const std::uint32_t large = magnitude >= 0x0f800000u ? magnitude | 0x7f800000u : magnitude + 0x38000000u;
    return std::bit_cast<float>((bits & 0x8000u) << 16 | (magnitude < 0x00800000u ? subnormal : large));
  }
  static void unpack_row(const void* row, std::int64_t num_elements, float* out) {
    for (std::int64_t i = 0; i < num_elements; ++i) out[i] = float_of(block_at<Half>(row, i));
  }
};

}  // namespace kvasir::quant
