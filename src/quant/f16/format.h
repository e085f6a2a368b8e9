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

  static void unpack_row(const void* row, std::int64_t num_elements, float* out);
};

}  // namespace kvasir::quant
