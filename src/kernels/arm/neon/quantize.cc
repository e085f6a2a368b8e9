// Quantising an activation row with 128-bit vectors. ref/quantize.cc is the definition.
#include <arm_neon.h>

#include "kernels/activation.h"
#include "kernels/arm/kernels.h"
#include "kernels/w8a8.h"

namespace kvasir::kernels::neon {

constexpr int kVectorsPerBlock = kActivationBlock / 4;

using BlockInputs = float32x4_t[kVectorsPerBlock];

static void load_block(const float* x, float32x4_t* inputs) {
  for (int i = 0; i < kVectorsPerBlock; ++i) inputs[i] = vld1q_f32(x + 4 * i);
}

static uint32x4_t magnitudes(float32x4_t x) { return vreinterpretq_u32_f32(vabsq_f32(x)); }

static float float_of(std::uint32_t bits) {
  float x;
  __builtin_memcpy(&x, &bits, sizeof(x));
  return x;
}

// The largest |x| of a block; a NaN or infinity comes out as one, since their bits are the largest integers.
static float largest_magnitude(const float32x4_t* x) {
  uint32x4_t four = vdupq_n_u32(0);
  for (int i = 0; i < kVectorsPerBlock; ++i) four = vmaxq_u32(four, magnitudes(x[i]));
  return float_of(vmaxvq_u32(four));
}

// The same without the groups of 4 that have a larger one than the threshold.
static float largest_inlier(const float32x4_t* x, float threshold) {
  std::uint32_t largest = 0;
  for (int i = 0; i < kVectorsPerBlock; ++i) {
    const std::uint32_t of_group_of_4 = vmaxvq_u32(magnitudes(x[i]));
    if (float_of(of_group_of_4) <= threshold && of_group_of_4 > largest) largest = of_group_of_4;
  }
  return float_of(largest);
}

// 16 codes of one byte each.
static int8x16_t pack_bytes(const int32x4_t* codes) {
  const int16x8_t low = vcombine_s16(vqmovn_s32(codes[0]), vqmovn_s32(codes[1]));
  const int16x8_t high = vcombine_s16(vqmovn_s32(codes[2]), vqmovn_s32(codes[3]));
  return vcombine_s8(vqmovn_s16(low), vqmovn_s16(high));
}

// outlier_code
static int32x4_t outlier_codes(int32x4_t codes) {
  const uint32x4_t too_large = vcgtq_s32(vabsq_s32(codes), vdupq_n_s32(127));
  return vandq_s32(vreinterpretq_s32_u32(too_large), vrshrq_n_s32(codes, kOutlierShift));
}

// The sum of 16 codes.
static int half_sum(const int32x4_t* codes) {
  return vaddvq_s32(vaddq_s32(vaddq_s32(codes[0], codes[1]), vaddq_s32(codes[2], codes[3])));
}

// Writes the codes of 32 inputs at a scale.
static void quantize_block(const float32x4_t* x, float scale, const ActivationRow& row, std::int64_t b) {
  const float32x4_t factor = vdupq_n_f32(inverse_of_scale(scale));
  int32x4_t codes[kVectorsPerBlock], outliers[kVectorsPerBlock];
  int outlier_groups = 0;  // bit j where group of 4 j is not all zeros
  for (int i = 0; i < kVectorsPerBlock; ++i) {
    codes[i] = vcvtnq_s32_f32(vmulq_f32(x[i], factor));  // to nearest, ties to even
    outliers[i] = outlier_codes(codes[i]);
    if (vmaxvq_u32(vreinterpretq_u32_s32(outliers[i])) != 0) outlier_groups |= 1 << i;
  }
  const int sum_high = half_sum(codes + kVectorsPerBlock / 2);
  const int sum = half_sum(codes) + sum_high;
  for (int i = 0; i < kVectorsPerBlock; ++i) {
    codes[i] = vsubq_s32(codes[i], vshlq_n_s32(outliers[i], kOutlierShift));
  }
  ActivationBlock& block = row.block(b);
  OutlierCodes& of_outliers = row.outliers(b);
  for (int half = 0; half < 2; ++half) {
    const int first = half * kVectorsPerBlock / 2;
    vst1q_s8(block.q + 16 * half, pack_bytes(codes + first));
    vst1q_s8(of_outliers.q + 16 * half, pack_bytes(outliers + first));
  }
  row.set_outlier_groups(b, outlier_groups);
  block.scale = scale;
  block.scaled_sum = scale * static_cast<float>(sum);
  block.offset = -128 * sum;
  block.offset_high = -128 * sum_high;
}

#include "kernels/generic/quantize_rows-inl.h"

}  // namespace kvasir::kernels::neon
