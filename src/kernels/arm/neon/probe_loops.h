// Parts of the probe loops (kernels/probe.h) of all of ARM's instruction sets.
#pragma once

#include <arm_neon.h>

#include "kernels/force_inline.h"
#include "kernels/probe.h"

namespace kvasir::kernels::neon {

inline constexpr int
    kStreams = 4;  // each its own quarter of the data: a page crossing of one does not stop the rest
inline constexpr int kAccumulators = 24;  // of 32 registers
static_assert(kReadGranuleBytes % (kStreams * 64) == 0);

inline std::uint64_t read(const void* data, std::int64_t num_bytes) {
  const auto* bytes = static_cast<const std::uint8_t*>(data);
  const std::int64_t stream_bytes = num_bytes / kStreams;
  uint8x16_t sums[4 * kStreams];
  for (uint8x16_t& sum : sums) sum = vdupq_n_u8(0);
  for (std::int64_t i = 0; i < stream_bytes; i += 64) {
    for (int stream = 0; stream < kStreams; ++stream) {
      const std::uint8_t* const line = bytes + stream * stream_bytes + i;
      for (int j = 0; j < 4; ++j) {
        sums[4 * stream + j] = vaddq_u8(sums[4 * stream + j], vld1q_u8(line + 16 * j));
      }
    }
  }
  uint8x16_t sum = sums[0];
  for (int i = 1; i < 4 * kStreams; ++i) sum = vaddq_u8(sum, sums[i]);
  return vgetq_lane_u64(vreinterpretq_u64_u8(sum), 0);
}

KVASIR_FORCE_INLINE std::int32_t sum_of(const int32x4_t* sums) {
  int32x4_t sum = sums[0];
  for (int i = 1; i < kAccumulators; ++i) sum = vaddq_s32(sum, sums[i]);
  return vgetq_lane_s32(sum, 0);
}

inline float fp32_fma(std::int64_t num_rounds) {
  const float32x4_t x = vdupq_n_f32(0.5f);
  float32x4_t sums[kAccumulators];
  for (float32x4_t& sum : sums) sum = vdupq_n_f32(0.0f);
  for (std::int64_t i = 0; i < num_rounds; ++i) {
    for (float32x4_t& sum : sums) sum = vfmaq_f32(x, sum, x);
  }
  float32x4_t sum = sums[0];
  for (int i = 1; i < kAccumulators; ++i) sum = vaddq_f32(sum, sums[i]);
  return vgetq_lane_f32(sum, 0);
}

}  // namespace kvasir::kernels::neon
