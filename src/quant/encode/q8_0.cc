#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/half.h"
#include "quant/encode/encode.h"
#include "quant/q8_0/format.h"

namespace kvasir::quant {

// The scale puts the largest magnitude at 127; halves round away from zero.
void encode_q8_0(const float* values, std::int64_t num_elements, std::byte* row) {
  for (std::int64_t begin = 0; begin < num_elements; begin += Q8_0::kBlockElements, row += sizeof(Q8_0::Block)) {
    const float* x = values + begin;
    float largest = 0.0f;
    bool is_number = true;
    for (int i = 0; i < Q8_0::kBlockElements; ++i) {
      largest = std::max(largest, std::abs(x[i]));
      is_number = is_number && x[i] - x[i] == 0.0f;
    }
    const float scale = is_number ? largest / 127.0f : NAN;
    const float inverse = 1.0f / scale;
    const bool has_codes = scale > 0.0f && inverse - inverse == 0.0f;
    Q8_0::Block block{.scale = float_to_half(scale), .codes = {}};
    for (int i = 0; i < Q8_0::kBlockElements && has_codes; ++i) {
      block.codes[i] = static_cast<std::int8_t>(std::round(x[i] * inverse));
    }
    std::memcpy(row, &block, sizeof block);
  }
}

}  // namespace kvasir::quant
