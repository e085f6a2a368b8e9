// Quantising an activation row with 256-bit vectors. ref/quantize.cc is the definition.
#include <immintrin.h>

#include "kernels/activation.h"
#include "kernels/w8a8.h"
#include "kernels/x86/kernels.h"
#include "kernels/x86/target_features.h"

KVASIR_TARGET_BEGIN(KVASIR_TARGET_AVX2)
namespace kvasir::kernels::avx2 {

using BlockInputs = __m256[4];

static void load_block(const float* x, __m256* inputs) {
  for (int i = 0; i < 4; ++i) inputs[i] = _mm256_loadu_ps(x + 8 * i);
}

static __m256i magnitudes(__m256 x) {
  return _mm256_and_si256(_mm256_castps_si256(x), _mm256_set1_epi32(INT32_MAX));
}

// The largest |x| of a block; a NaN or infinity comes out as one, since their bits are the largest integers.
static float largest_magnitude(const __m256* x) {
  __m256i eight = _mm256_setzero_si256();
  for (int i = 0; i < 4; ++i) eight = _mm256_max_epi32(eight, magnitudes(x[i]));
  __m128i four = _mm_max_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
  four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0b01'00'11'10));
  four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0b10'11'00'01));
  return _mm_cvtss_f32(_mm_castsi128_ps(four));
}

// The same without the groups of 4 that have a larger one than the threshold.
static float largest_inlier(const __m256* x, float threshold) {
  __m256 inliers[4];
  for (int i = 0; i < 4; ++i) {
    __m256i groups_of_4 = magnitudes(x[i]);
    groups_of_4 = _mm256_max_epi32(groups_of_4, _mm256_shuffle_epi32(groups_of_4, 0b01'00'11'10));
    groups_of_4 = _mm256_max_epi32(groups_of_4, _mm256_shuffle_epi32(groups_of_4, 0b10'11'00'01));
    const __m256 is_inlier = _mm256_cmp_ps(_mm256_castsi256_ps(groups_of_4), _mm256_set1_ps(threshold),
                                           _CMP_LE_OQ);
    inliers[i] = _mm256_and_ps(x[i], is_inlier);
  }
  return largest_magnitude(inliers);
}

// 32 codes of one byte each.
static __m256i pack_bytes(const __m256i* codes) {
  // Packing works within 128-bit halves, so dword i of the result is group of 4 0, 2, 4, 6, 1, 3, 5, 7.
  const __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(codes[0], codes[1]),
                                           _mm256_packs_epi32(codes[2], codes[3]));
  return _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

// outlier_code
static __m256i outlier_codes(__m256i codes) {
  const __m256i too_large = _mm256_cmpgt_epi32(_mm256_abs_epi32(codes), _mm256_set1_epi32(127));
  const __m256i rounded = _mm256_add_epi32(codes, _mm256_set1_epi32(1 << (kOutlierShift - 1)));
  return _mm256_and_si256(too_large, _mm256_srai_epi32(rounded, kOutlierShift));
}

// Bit j where group of 4 j is not all zeros.
static int groups_of_4_in_use(__m256i bytes) {
  const __m256i is_zero = _mm256_cmpeq_epi32(bytes, _mm256_setzero_si256());
  return 0xff & ~_mm256_movemask_ps(_mm256_castsi256_ps(is_zero));
}

// Lane 0: the sum of the first 16 codes. Lane 1: of the last 16.
static __m128i half_sums(const __m256i* codes) {
  const __m256i low = _mm256_add_epi32(codes[0], codes[1]), high = _mm256_add_epi32(codes[2], codes[3]);
  const __m256i pairs = _mm256_hadd_epi32(low, high);
  const __m128i groups_of_4 = _mm_add_epi32(_mm256_castsi256_si128(pairs),
                                            _mm256_extracti128_si256(pairs, 1));
  return _mm_hadd_epi32(groups_of_4, groups_of_4);
}

// Writes the codes of 32 inputs at a scale.
static void quantize_block(const __m256* x, float scale, const ActivationRow& row, std::int64_t b) {
  const __m256 factor = _mm256_set1_ps(inverse_of_scale(scale));
  __m256i codes[4], outliers[4];
  for (int i = 0; i < 4; ++i) {
    codes[i] = _mm256_cvtps_epi32(_mm256_mul_ps(x[i], factor));  // to nearest, ties to even
    outliers[i] = outlier_codes(codes[i]);
  }
  const __m128i sums = half_sums(codes);
  const int sum_high = _mm_extract_epi32(sums, 1);
  const int sum = _mm_cvtsi128_si32(sums) + sum_high;
  for (int i = 0; i < 4; ++i) {
    codes[i] = _mm256_sub_epi32(codes[i], _mm256_slli_epi32(outliers[i], kOutlierShift));
  }
  const __m256i outlier_bytes = pack_bytes(outliers);
  ActivationBlock& block = row.block(b);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(block.q), pack_bytes(codes));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(row.outliers(b).q), outlier_bytes);
  row.set_outlier_groups(b, groups_of_4_in_use(outlier_bytes));
  block.scale = scale;
  block.scaled_sum = scale * static_cast<float>(sum);
  block.offset = -128 * sum;
  block.offset_high = -128 * sum_high;
}

#include "kernels/generic/quantize_rows-inl.h"

}  // namespace kvasir::kernels::avx2
KVASIR_TARGET_END
