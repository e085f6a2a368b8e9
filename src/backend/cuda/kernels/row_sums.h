// Sums over a row of floats by one warp, in the order of the CPU's vectors (kernels/generic/norm-inl.h): 64 sums side by
// side, four vectors of 16 lanes, then a tree. Every lane gets the result.
#pragma once

#include <cstdint>

#include "backend/cuda/simt/simt.h"

namespace kvasir::cuda {

inline constexpr int kVectorLanes = 16;
inline constexpr int kSumsSideBySide = 64;

// Lane i meets i + 8, then i + 4, i + 2, i + 1, in each half of the warp by itself.
KVASIR_DEVICE float add_lanes_of_half(float x) {
  for (int distance = kVectorLanes / 2; distance > 0; distance /= 2) x = x + simt::shuffle_xor(x, distance);
  return x;
}
KVASIR_DEVICE float max_of_half(float x) {
  for (int distance = kVectorLanes / 2; distance > 0; distance /= 2)
    x = simt::max_or_second(x, simt::shuffle_xor(x, distance));
  return x;
}

// Sums 0 to 31 and 32 to 63 of a lane, together.
KVASIR_DEVICE float add_sums(float low, float high) {
  low = low + simt::shuffle_xor(low, kVectorLanes);
  high = high + simt::shuffle_xor(high, kVectorLanes);
  return add_lanes_of_half(low + high);
}

KVASIR_DEVICE float sum_of_squares(const float* x, std::int64_t n) {
  const int lane = simt::lane_index();
  float low = 0.0f, high = 0.0f;
  std::int64_t i = 0;
  for (; i + kSumsSideBySide <= n; i += kSumsSideBySide) {
    const float a = simt::load(x + i + lane), b = simt::load(x + i + lane + simt::kWarpSize);
    low = simt::fma_rn(a, a, low);
    high = simt::fma_rn(b, b, high);
  }
  for (; i < n; i += kVectorLanes) {  // what is left goes to the first vector
    if (lane >= kVectorLanes || i + lane >= n) continue;
    const float a = simt::load(x + i + lane);
    low = simt::fma_rn(a, a, low);
  }
  return add_sums(low, high);
}

// 1 / sqrt(mean(x^2) + eps); NaN rather than 0 where the sum overflows.
KVASIR_DEVICE float rms_factor(const float* x, float eps, std::int64_t n) {
  const float sum = sum_of_squares(x, n);
  if (!(sum < simt::infinity())) return simt::quiet_nan();
  return simt::div_rn(1.0f, simt::sqrt_rn(simt::div_rn(sum, static_cast<float>(n)) + eps));
}

// The sum of x - shift, or of its square.
template <bool kSquares>
KVASIR_DEVICE float sum_of(const float* x, float shift, std::int64_t n) {
  float low = 0.0f, high = 0.0f;
  const auto add = [&](float sum, std::int64_t i) {
    const float value = simt::load(x + i) - shift;
    return kSquares ? simt::fma_rn(value, value, sum) : sum + value;
  };
  for (std::int64_t i = simt::lane_index(); i < n; i += kSumsSideBySide) {
    low = add(low, i);
    if (i + simt::kWarpSize < n) high = add(high, i + simt::kWarpSize);
  }
  return add_sums(low, high);
}

}  // namespace kvasir::cuda
