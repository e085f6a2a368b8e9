// F32: the numbers themselves.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include "quant/float_field.h"

namespace kvasir::quant {

struct F32 {
  static constexpr std::string_view kName = "F32";
  static constexpr std::uint32_t kGgufType = 0;
  static constexpr int kBlockElements = 1;
  using Block = float;
  static constexpr FloatField kFloats[] = {{0, FloatKind::kF32}};

  static void unpack_row(const void* row, std::int64_t num_elements, float* out) {
    std::memcpy(out, row, static_cast<std::size_t>(num_elements) * sizeof(float));
  }
};

}  // namespace kvasir::quant
