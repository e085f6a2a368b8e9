// Random weight rows in their file layout, for tests and benchmarks.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "base/half.h"
#include "quant/dtype.h"

namespace kvasir::kernels {

struct RandomWeights {
  DType dtype;
  std::int64_t num_rows, k;
  std::vector<char> bytes;  // [num_rows, row_bytes]

  std::int64_t row_bytes() const { return kvasir::row_bytes(dtype, k); }
  const char* row(std::int64_t r) const { return bytes.data() + r * row_bytes(); }
};

inline void put_float(float value, const quant::FloatField& field, char* block) {
  if (field.kind == quant::FloatKind::kF32) {
    std::memcpy(block + field.byte, &value, sizeof value);
    return;
  }
  if (field.kind == quant::FloatKind::kE8M0) {
    block[field.byte] = static_cast<char>(std::bit_cast<std::uint32_t>(value) >> 23);  // its exponent
    return;
  }
  if (field.kind == quant::FloatKind::kUE4M3) {
    const int exponent = std::max(std::ilogb(value) + 7, 0);
    block[field.byte] = static_cast<char>(std::min(exponent << 3 | (block[field.byte] & 7), 126));
    return;
  }
  const std::uint16_t bits = field.kind == quant::FloatKind::kF16
                                 ? float_to_half(value)
                                 : static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
  std::memcpy(block + field.byte, &bits, sizeof bits);
}

// Codes are random bytes; scales and minima (or the weights themselves, where there are no blocks) are normal
// with the given deviation.
inline RandomWeights random_weights(DType dtype, std::int64_t num_rows, std::int64_t k, float deviation,
                                    std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, deviation);
  RandomWeights weights{dtype, num_rows, k, {}};
  weights.bytes.resize(static_cast<std::size_t>(num_rows * weights.row_bytes()));
  const std::int64_t block_bytes = info_of(dtype).block_bytes;
  const std::int32_t block_elements = info_of(dtype).block_elements;
  for (std::size_t at = 0; at < weights.bytes.size(); at += block_bytes) {
    char* block = weights.bytes.data() + at;
    if (block_elements > 1) {
      for (std::int64_t i = 0; i < block_bytes; ++i) block[i] = static_cast<char>(random());
    }
    for (const quant::FloatField& field : info_of(dtype).floats) put_float(normal(random), field, block);
  }
  return weights;
}

}  // namespace kvasir::kernels
