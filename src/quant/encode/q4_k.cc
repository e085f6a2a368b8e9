#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/half.h"
#include "quant/encode/encode.h"
#include "quant/q4_k/format.h"
#include "quant/sub_scales.h"

namespace kvasir::quant {
namespace {

constexpr int kSubBlocks = 8, kSubElements = 32;
constexpr int kMostCode = 15, kMostSubScale = 63;

// value = scale * code - offset of 32 numbers; both are >= 0.
struct Affine {
  float scale = 0.0f, offset = 0.0f;
};

using Codes = std::array<std::uint8_t, kSubElements>;
using Weights = std::array<float, kSubElements>;

Codes codes_with(const float* x, Affine affine) {
  Codes codes{};
  if (affine.scale <= 0.0f) return codes;
  const float inverse = 1.0f / affine.scale;
  for (std::size_t i = 0; i < kSubElements; ++i) {
    const float code = std::clamp((x[i] + affine.offset) * inverse, 0.0f, static_cast<float>(kMostCode));
    codes[i] = static_cast<std::uint8_t>(std::lrint(code));
  }
  return codes;
}

// How much an error of each number counts: more with its size, so that what is large stays exact.
Weights weights_of(const float* x) {
  float sum = 0.0f;
  for (int i = 0; i < kSubElements; ++i) sum += x[i] * x[i];
  const float typical = std::sqrt(sum / kSubElements);
  Weights weights;
  for (std::size_t i = 0; i < kSubElements; ++i) weights[i] = typical + std::abs(x[i]);
  return weights;
}

float error_of(const float* x, const Weights& weights, const Codes& codes, Affine affine) {
  float error = 0.0f;
  for (std::size_t i = 0; i < kSubElements; ++i) {
    const float difference = affine.scale * static_cast<float>(codes[i]) - affine.offset - x[i];
    error += weights[i] * difference * difference;
  }
  return error;
}

// The scale and offset that err least with these codes: weighted least squares, the offset not below 0.
Affine fit(const float* x, const Weights& weights, const Codes& codes) {
  float w = 0.0f, wq = 0.0f, wqq = 0.0f, wx = 0.0f, wqx = 0.0f;
  for (std::size_t i = 0; i < kSubElements; ++i) {
    const auto q = static_cast<float>(codes[i]);
    w += weights[i];
    wq += weights[i] * q;
    wqq += weights[i] * q * q;
    wx += weights[i] * x[i];
    wqx += weights[i] * q * x[i];
  }
  const float determinant = w * wqq - wq * wq;
  if (determinant > 0.0f) {
    const Affine affine{(w * wqx - wq * wx) / determinant, (wq * wqx - wqq * wx) / determinant};
    if (affine.offset >= 0.0f && affine.scale > 0.0f) return affine;
  }
  return wqq > 0.0f ? Affine{std::max(0.0f, wqx / wqq), 0.0f} : Affine{};
}

// Tries scales around the one that just covers the range; each gives codes, and these the best scale for them.
Affine search(const float* x) {
  constexpr int kTries = 20;
  constexpr float kStep = 0.1f;  // of a code, at the top of the range
  const auto [least, most] = std::minmax_element(x, x + kSubElements);
  const float low = std::min(*least, 0.0f), range = std::max(*most, 0.0f) - low;
  if (!(range > 0.0f)) return {};
  const Weights weights = weights_of(x);
  Affine best{range / kMostCode, -low};
  float best_error = error_of(x, weights, codes_with(x, best), best);
  for (int i = 0; i <= kTries; ++i) {
    const float levels = kMostCode - 1.0f + kStep * static_cast<float>(i);
    const Codes codes = codes_with(x, {range / levels, -low});
    const Affine affine = fit(x, weights, codes);
    const float error = error_of(x, weights, codes, affine);
    if (error >= best_error) continue;
    best_error = error;
    best = affine;
  }
  return best;
}

int rounded_ratio(float value, float unit) {
  return unit > 0.0f ? std::clamp(static_cast<int>(std::lrint(value / unit)), 0, kMostSubScale) : 0;
}

void put_sub(std::uint8_t* packed, int s, int scale, int min) {
  if (s < 4) {
    packed[s] = static_cast<std::uint8_t>(packed[s] | scale);
    packed[s + 4] = static_cast<std::uint8_t>(packed[s + 4] | min);
    return;
  }
  packed[s + 4] = static_cast<std::uint8_t>((scale & 15) | (min & 15) << 4);
  packed[s - 4] = static_cast<std::uint8_t>(packed[s - 4] | (scale >> 4) << 6);
  packed[s] = static_cast<std::uint8_t>(packed[s] | (min >> 4) << 6);
}

Q4_K::Block encode_block(const float* x) {
  std::array<Affine, kSubBlocks> affines;
  float most_scale = 0.0f, most_offset = 0.0f;
  for (std::size_t s = 0; s < kSubBlocks; ++s) {
    affines[s] = search(x + s * kSubElements);
    most_scale = std::max(most_scale, affines[s].scale);
    most_offset = std::max(most_offset, affines[s].offset);
  }
  Q4_K::Block block{.scale = float_to_half(most_scale / kMostSubScale),
                    .min_scale = float_to_half(most_offset / kMostSubScale),
                    .sub_scales_mins = {},
                    .nibbles = {}};
  const float scale_unit = half_to_float(block.scale), offset_unit = half_to_float(block.min_scale);
  for (int s = 0; s < kSubBlocks; ++s) {
    const Affine& wanted = affines[static_cast<std::size_t>(s)];
    const int scale = rounded_ratio(wanted.scale, scale_unit), min = rounded_ratio(wanted.offset, offset_unit);
    put_sub(block.sub_scales_mins, s, scale, min);
    const Affine stored{scale_unit * static_cast<float>(scale), offset_unit * static_cast<float>(min)};
    const Codes codes = codes_with(x + s * kSubElements, stored);
    std::uint8_t* nibbles = block.nibbles + 32 * (s / 2);
    for (std::size_t i = 0; i < kSubElements; ++i) {
      nibbles[i] = static_cast<std::uint8_t>(nibbles[i] | codes[i] << (4 * (s % 2)));
    }
  }
  return block;
}

}  // namespace

void encode_q4_k(const float* values, std::int64_t num_elements, std::byte* row) {
  for (std::int64_t begin = 0; begin < num_elements; begin += Q4_K::kBlockElements, row += sizeof(Q4_K::Block)) {
    const float* x = values + begin;
    const bool is_number = std::all_of(x, x + Q4_K::kBlockElements, [](float value) { return value - value == 0.0f; });
    Q4_K::Block block{};
    block.scale = float_to_half(NAN);
    if (is_number) block = encode_block(x);
    std::memcpy(row, &block, sizeof block);
  }
}

}  // namespace kvasir::quant
