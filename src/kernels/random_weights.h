// Random weight rows in their file layout, for tests and benchmarks.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "base/half.h"
#include "quant/format.h"

namespace kvasir::kernels {

struct RandomWeights {
  DType dtype;
  std::int64_t num_rows, k;
  std::vector<char> bytes;  // [num_rows, row_bytes]

  std::int64_t row_bytes() const { return kvasir::row_bytes(dtype, k); }
  const char* row(std::int64_t r) const { return bytes.data() + r * row_bytes(); }
};

// Byte offsets of the binary16 fields of a block.
inline std::vector<int> half_offsets(DType dtype) {
  switch (dtype) {
    case DType::kQ8_0:
    case DType::kQ4_0:
    case DType::kQ5_0:
      return {0};
    case DType::kQ4_1:
    case DType::kQ5_1:
    case DType::kQ4_K:
    case DType::kQ5_K:
      return {0, 2};
    case DType::kQ6_K:
      return {208};
    default:
      return {};
  }
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
  for (std::size_t at = 0; at < weights.bytes.size(); at += block_bytes) {
    char* block = weights.bytes.data() + at;
    if (dtype == DType::kF32) {
      const float value = normal(random);
      std::memcpy(block, &value, sizeof value);
    } else if (dtype == DType::kF16) {
      const std::uint16_t value = float_to_half(normal(random));
      std::memcpy(block, &value, sizeof value);
    } else if (dtype == DType::kBF16) {
      const std::uint16_t value = std::bit_cast<std::uint32_t>(normal(random)) >> 16;
      std::memcpy(block, &value, sizeof value);
    } else {
      for (std::int64_t i = 0; i < block_bytes; ++i) block[i] = static_cast<char>(random());
      for (const int offset : half_offsets(dtype)) {
        const std::uint16_t value = float_to_half(normal(random));
        std::memcpy(block + offset, &value, sizeof value);
      }
    }
  }
  return weights;
}

}  // namespace kvasir::kernels
