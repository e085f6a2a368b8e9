// Layout of a quantised activation row: what quantize_row writes and the integer matmuls read.
#pragma once

#include <cfloat>
#include <cstdint>

namespace kvasir::kernels {

// 32 consecutive inputs of one token: x[i] is about scale * q[i].
//
// The sums serve the weights' zero points and minima: sum((code - zero) * q) = sum(code * q) + zero *
// neg_sum, and a minimum m shared by the block adds m * scaled_sum.
struct ActivationBlock {
  std::int8_t q[32];          // within [-127, 127]
  float scale;                // amax / 127, or 0 where that is subnormal
  float scaled_sum;           // scale * sum(q)
  std::int32_t neg_sum;       // -sum(q)
  std::int32_t neg_sum_high;  // -sum(q[16..31])
};
static_assert(sizeof(ActivationBlock) == 48);

// q is x * inverse_of_scale, rounded to nearest even. A block whose scale would be subnormal is taken as
// zeros: its largest input is below 1.5e-36, and dividing by a subnormal scale could leave the range of int8.
inline float normal_or_zero(float scale) { return scale >= FLT_MIN ? scale : 0.0f; }
inline float activation_scale(float amax) { return normal_or_zero(amax / 127.0f); }
inline float inverse_of_scale(float scale) { return scale > 0.0f ? 1.0f / scale : 0.0f; }

// A few channels of a transformer carry values far above the rest (Dettmers et al. 2022), and the rounding of
// their blocks makes most of the error. So a block whose largest input exceeds kOutlierRatio times the row's
// mean of block maxima is an outlier: what rounding left over is quantised once more, as a second block of
// 1/254 the scale that the same weights multiply. README's closeness table shows what it buys beside a
// program that rounds once.
inline constexpr float kOutlierRatio = 2.0f;
inline constexpr float kResidualScale = 1.0f / 254.0f;

inline float outlier_threshold(float sum_of_maxima, std::int64_t num_blocks) {
  return kOutlierRatio * (sum_of_maxima / static_cast<float>(num_blocks));
}

// A row of k inputs: num_blocks() blocks, as many residuals (only those of outliers are ever written or
// read), and one bit per block that tells which are outliers. Which they are depends on the row alone.
struct ActivationRow {
  ActivationBlock* blocks;
  ActivationBlock* residuals;
  std::uint64_t* outliers;  // [(num_blocks + 63) / 64]
};
struct ConstActivationRow {
  const ActivationBlock* blocks;
  const ActivationBlock* residuals;
  const std::uint64_t* outliers;

  bool is_outlier(std::int64_t block) const { return (outliers[block / 64] >> (block % 64) & 1) != 0; }
};

constexpr std::int64_t outlier_words(std::int64_t k) { return (k / 32 + 63) / 64; }

inline ActivationRow activation_row(void* quantized, std::int64_t k) {
  auto* blocks = static_cast<ActivationBlock*>(quantized);
  return {blocks, blocks + k / 32, reinterpret_cast<std::uint64_t*>(blocks + 2 * (k / 32))};
}
inline ConstActivationRow activation_row(const void* quantized, std::int64_t k) {
  const auto* blocks = static_cast<const ActivationBlock*>(quantized);
  return {blocks, blocks + k / 32, reinterpret_cast<const std::uint64_t*>(blocks + 2 * (k / 32))};
}

// Bytes of a row of k inputs: an odd number of cache lines, so that the rows of a tile of tokens, which a
// kernel reads at the same offset, do not compete for the same sets of the L1 cache.
constexpr std::int64_t quantized_row_bytes(std::int64_t k) {
  const std::int64_t bytes =
      2 * (k / 32) * static_cast<std::int64_t>(sizeof(ActivationBlock)) + 8 * outlier_words(k);
  return ((bytes + 63) / 64 | 1) * 64;
}

}  // namespace kvasir::kernels
