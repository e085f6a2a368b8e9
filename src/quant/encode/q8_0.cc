#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/half.h"
#include "quant/encode/encode.h"
#include "quant/q8_0/format.h"

namespace kvasir::quant {
namespace {

constexpr int kElements = Q8_0::kBlockElements;
constexpr int kLargestCode = 127, kFirstTriedCode = 96;  // of the largest magnitude

// Four sums side by side.
using Lanes [[gnu::vector_size(16)]] = float;
constexpr int kLanes = 4;

Lanes lanes_at(const float* x) {
  Lanes lanes;
  std::memcpy(&lanes, x, sizeof lanes);
  return lanes;
}

// To nearest even. Requires: magnitudes of at most 2^22.
template <class Number>
Number rounded(Number value) {
  constexpr float kShift = 12582912.0f;  // 1.5 * 2^23: no fraction is left beside it
  return value + kShift - kShift;
}

// Halves away from zero, as std::round does, which is a call.
float rounded_away(float value) {
  const float nearest = rounded(value), rest = value - nearest;
  if (rest == 0.5f && value > 0.0f) return nearest + 1.0f;
  return rest == -0.5f && value < 0.0f ? nearest - 1.0f : nearest;
}

// The scale puts the largest magnitude at 127.
Q8_0::Block plain_block(const float* x, float largest) {
  const float scale = largest / kLargestCode;
  const float inverse = 1.0f / scale;
  const bool has_codes = scale > 0.0f && inverse - inverse == 0.0f;
  Q8_0::Block block{.scale = float_to_half(scale), .codes = {}};
  for (int i = 0; i < kElements && has_codes; ++i) block.codes[i] = static_cast<std::int8_t>(rounded_away(x[i] * inverse));
  return block;
}

// The squared error of the nearest codes.
float error_of(const float* x, float scale) {
  const float inverse = 1.0f / scale;
  Lanes sums{};
  for (int i = 0; i < kElements; i += kLanes) {
    const Lanes values = lanes_at(x + i);
    const Lanes error = rounded(values * inverse) * scale - values;
    sums += error * error;
  }
  return sums[0] + sums[1] + (sums[2] + sums[3]);
}

float error_of(const float* x, const Q8_0::Block& block) {
  const float scale = half_to_float(block.scale);
  float sum = 0.0f;
  for (int i = 0; i < kElements; ++i) {
    const float error = static_cast<float>(block.codes[i]) * scale - x[i];
    sum += error * error;
  }
  return sum;
}

float as_half(float value) { return half_to_float(float_to_half(value)); }

// The scale that errs least with the codes of this one.
float fitted(const float* x, float scale) {
  float products = 0.0f, squares = 0.0f;
  for (int i = 0; i < kElements; ++i) {
    const float code = rounded(x[i] / scale);
    products += x[i] * code;
    squares += code * code;
  }
  return as_half(products / squares);
}

struct Scale {
  float value = 0.0f, error = INFINITY;
};

// The best of scales that put the largest magnitude near a whole code, then fitted to its codes. An error of INFINITY:
// there is none in half precision.
Scale best_scale(const float* x, float largest) {
  constexpr float kLeast = 0x1p-14f;       // below it half precision has fewer bits
  constexpr float kMostCode = 127.4f;      // rounds to 127
  Scale best;
  const auto consider = [&](float scale) {
    if (scale < kLeast || scale - scale != 0.0f || largest / scale > kMostCode) return;
    if (const float error = error_of(x, scale); error < best.error) best = {scale, error};
  };
  for (int code = kFirstTriedCode; code <= kLargestCode; ++code) consider(as_half(largest / static_cast<float>(code)));
  if (best.value > 0.0f) consider(fitted(x, best.value));
  return best;
}

}  // namespace

void encode_q8_0(const float* values, std::int64_t num_elements, std::byte* row) {
  for (std::int64_t begin = 0; begin < num_elements; begin += kElements, row += sizeof(Q8_0::Block)) {
    const float* x = values + begin;
    float largest = 0.0f;
    bool is_number = true;
    for (int i = 0; i < kElements; ++i) {
      largest = std::max(largest, std::abs(x[i]));
      is_number = is_number && x[i] - x[i] == 0.0f;
    }
    Q8_0::Block block = plain_block(x, is_number ? largest : NAN);
    if (const float error = is_number ? error_of(x, block) : 0.0f; error > 0.0f) {
      if (const Scale scale = best_scale(x, largest); scale.error < error) {
        block.scale = float_to_half(scale.value);
        const float inverse = 1.0f / scale.value;
        for (int i = 0; i < kElements; ++i) block.codes[i] = static_cast<std::int8_t>(rounded(x[i] * inverse));
      }
    }
    std::memcpy(row, &block, sizeof block);
  }
}

}  // namespace kvasir::quant
