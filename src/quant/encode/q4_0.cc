#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/half.h"
#include "quant/encode/encode.h"
#include "quant/q4_0/format.h"

namespace kvasir::quant {
namespace {

// The number of the largest magnitude, with its sign; NaN when one of them is no number.
float signed_peak(const float* x, int count) {
  float peak = 0.0f;
  for (int i = 0; i < count; ++i) {
    if (x[i] - x[i] != 0.0f) return NAN;
    if (std::abs(x[i]) > std::abs(peak)) peak = x[i];
  }
  return peak;
}

}  // namespace

// The scale, of either sign, puts the number of the largest magnitude at code 0, which stands for -8.
void encode_q4_0(const float* values, std::int64_t num_elements, std::byte* row) {
  for (std::int64_t begin = 0; begin < num_elements; begin += Q4_0::kBlockElements, row += sizeof(Q4_0::Block)) {
    const float* x = values + begin;
    const float scale = signed_peak(x, Q4_0::kBlockElements) / -8.0f;
    const float inverse = scale == 0.0f ? 0.0f : 1.0f / scale;
    const bool has_codes = inverse - inverse == 0.0f;
    const auto code_of = [&](float value) {
      if (!has_codes) return 8;
      return std::clamp(static_cast<int>(value * inverse + 8.5f), 0, 15);
    };
    Q4_0::Block block{.scale = float_to_half(scale), .nibbles = {}};
    for (int i = 0; i < 16; ++i) {
      block.nibbles[i] = static_cast<std::uint8_t>(code_of(x[i]) | code_of(x[i + 16]) << 4);
    }
    std::memcpy(row, &block, sizeof block);
  }
}

}  // namespace kvasir::quant
