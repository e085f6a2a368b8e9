#include <algorithm>
#include <cmath>
#include <cstring>

#include "quant/encode/encode.h"
#include "quant/float_field.h"
#include "quant/mxfp4/format.h"
#include "quant/nibble_tables.h"

namespace kvasir::quant {
namespace {

constexpr int kExponentBias = 127, kLargestE2m1Exponent = 2;  // 6 = 1.5 * 2^2
constexpr std::uint8_t kNotANumber = 255;

std::uint8_t exponent_of(const float* x) {
  float largest = 0.0f;
  for (int i = 0; i < MXFP4::kBlockElements; ++i) {
    if (x[i] - x[i] != 0.0f) return kNotANumber;
    largest = std::max(largest, std::abs(x[i]));
  }
  if (largest == 0.0f) return 0;
  return static_cast<std::uint8_t>(std::clamp(std::ilogb(largest) - kLargestE2m1Exponent + kExponentBias, 0, 254));
}

// The nearest number, the first of two that are as near.
int code_of(float value, float half_scale) {
  int best = 0;
  float least = INFINITY;
  for (int code = 0; code < 16; ++code) {
    const float error = std::abs(half_scale * static_cast<float>(kE2m1Codes[code] - kE2m1Zero) - value);
    if (error >= least) continue;
    least = error;
    best = code;
  }
  return best;
}

}  // namespace

// The scale is the power of two that puts the largest magnitude between 4 and 8, of which 6 is the most.
void encode_mxfp4(const float* values, std::int64_t num_elements, std::byte* row) {
  for (std::int64_t begin = 0; begin < num_elements; begin += MXFP4::kBlockElements, row += sizeof(MXFP4::Block)) {
    const float* x = values + begin;
    MXFP4::Block block{.exponent = exponent_of(x), .nibbles = {}};
    const float half_scale = 0.5f * e8m0_to_float(block.exponent);
    for (int i = 0; i < 16 && block.exponent != kNotANumber; ++i) {
      const int both = code_of(x[i], half_scale) | code_of(x[i + 16], half_scale) << 4;
      block.nibbles[i] = static_cast<std::uint8_t>(both);
    }
    std::memcpy(row, &block, sizeof block);
  }
}

}  // namespace kvasir::quant
