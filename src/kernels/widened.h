// Packs a format that has no unit of its own as F16.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/half.h"
#include "kernels/packed.h"

namespace kvasir::kernels {

// The nearest binary16, and the largest finite one for what lies beyond: a finite file stays finite.
inline std::uint16_t widened_weight(float weight) {
  constexpr float kMaxHalf = 65504.0f;
  return float_to_half(std::clamp(weight, -kMaxHalf, kMaxHalf));
}

// FormatKernels::pack_group.
template <class Format>
void pack_widened_group(const void* rows, std::int64_t row_bytes, int num_rows, std::int64_t k,
                        void* packed) {
  std::memset(packed, 0, static_cast<std::size_t>(column_group_bytes<PackedF16>(k)));
  auto* columns = static_cast<PackedF16*>(packed);
  for (int row = 0; row < num_rows; ++row) {
    const char* bytes = static_cast<const char*>(rows) + row * row_bytes;
    for (std::int64_t i = 0; i < k; i += Format::kBlockElements) {
      float weights[Format::kBlockElements];
      Format::unpack_row(
          bytes + i / Format::kBlockElements * static_cast<std::int64_t>(sizeof(typename Format::Block)),
          Format::kBlockElements, weights);
      for (int j = 0; j < Format::kBlockElements; ++j) columns[i + j].rows[row] = widened_weight(weights[j]);
    }
  }
}

}  // namespace kvasir::kernels
