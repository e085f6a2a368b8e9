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
inline float activation_scale(float amax) {
  const float scale = amax / 127.0f;
  return scale >= FLT_MIN ? scale : 0.0f;
}
inline float inverse_of_scale(float scale) { return scale > 0.0f ? 1.0f / scale : 0.0f; }

// Bytes of a row of k inputs: an odd number of cache lines, so that the rows of a tile of tokens, which a
// kernel reads at the same offset, do not compete for the same sets of the L1 cache.
constexpr std::int64_t quantized_row_bytes(std::int64_t k) {
  const std::int64_t bytes = k / 32 * static_cast<std::int64_t>(sizeof(ActivationBlock));
  return ((bytes + 63) / 64 | 1) * 64;
}

}  // namespace kvasir::kernels
