// Quantising an activation row with 256-bit vectors. ref/quantize.cc is the definition.
#include <immintrin.h>

#include "kernels/activation.h"
#include "kernels/matmul_kernels.h"
#include "kernels/target_region.h"
#include "kernels/wide.h"

KVASIR_TARGET_BEGIN(KVASIR_TARGET_AVX2)
namespace kvasir::kernels::avx2 {

// The largest |x| of a block; a NaN or infinity comes out as one, since their bits are the largest integers.
static float largest_magnitude(const __m256* x) {
  const __m256i magnitude = _mm256_set1_epi32(INT32_MAX);
  __m256i eight = _mm256_setzero_si256();
  for (int i = 0; i < 4; ++i) {
    eight = _mm256_max_epi32(eight, _mm256_and_si256(_mm256_castps_si256(x[i]), magnitude));
  }
  __m128i four = _mm_max_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
  four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0b01'00'11'10));
  four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0b10'11'00'01));
  return _mm_cvtss_f32(_mm_castsi128_ps(four));
}

// 32 floats to the nearest int8 each, ties to even.
static __m256i round_to_int8(const __m256* x, __m256 factor) {
  __m256i words[4];
  for (int i = 0; i < 4; ++i) words[i] = _mm256_cvtps_epi32(_mm256_mul_ps(x[i], factor));
  // Packing works within 128-bit halves, so dword i of the result is quad 0, 2, 4, 6, 1, 3, 5, 7.
  const __m256i bytes =
      _mm256_packs_epi16(_mm256_packs_epi32(words[0], words[1]), _mm256_packs_epi32(words[2], words[3]));
  return _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

// Lane 0: the sum of the first 16 bytes. Lane 1: of the last 16.
static __m128i half_sums(__m256i bytes) {
  const __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), bytes);
  const __m256i quads = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
  const __m128i sums = _mm_hadd_epi32(_mm256_castsi256_si128(quads), _mm256_extracti128_si256(quads, 1));
  return _mm_hadd_epi32(sums, sums);
}

// Codes of 32 inputs at a scale.
static __m256i quantize_block(const __m256* x, float scale, ActivationBlock* block) {
  block->scale = scale;
  const __m256i q = round_to_int8(x, _mm256_set1_ps(inverse_of_scale(scale)));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(block->q), q);
  const __m128i sums = half_sums(q);
  const int sum_high = _mm_extract_epi32(sums, 1);
  const int sum = _mm_cvtsi128_si32(sums) + sum_high;
  block->scaled_sum = scale * static_cast<float>(sum);
  block->offset = -128 * sum;
  block->offset_high = -128 * sum_high;
  return q;
}

// x - scale * q, each with one rounding.
static void subtract_codes(__m256* x, __m256i q, float scale) {
  const __m256 factor = _mm256_set1_ps(scale);
  __m128i bytes[4] = {_mm256_castsi256_si128(q), _mm_srli_si128(_mm256_castsi256_si128(q), 8),
                      _mm256_extracti128_si256(q, 1), _mm_srli_si128(_mm256_extracti128_si256(q, 1), 8)};
  for (int i = 0; i < 4; ++i) {
    x[i] = _mm256_fnmadd_ps(factor, _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes[i])), x[i]);
  }
}

static void load_block(const float* x, __m256* inputs) {
  for (int i = 0; i < 4; ++i) inputs[i] = _mm256_loadu_ps(x + 8 * i);
}

bool quantize_row(const float* x, std::int64_t k, std::int32_t token, std::int32_t num_tokens,
                  void* quantized) {
  const ActivationRow row = activation_row(quantized, k, token, num_tokens);
  const std::int64_t num_blocks = k / kActivationBlock;
  __m256 inputs[4];
  float sum_of_maxima = 0.0f;
  for (std::int64_t b = 0; b < num_blocks; ++b) {
    load_block(x + b * kActivationBlock, inputs);
    const float amax = largest_magnitude(inputs);
    if (!(amax <= kLargestInput)) {
      zero_row(row, num_blocks);
      return false;
    }
    row.block(b).scale = amax;  // until the second pass
    sum_of_maxima += amax;
  }
  const float threshold = outlier_threshold(sum_of_maxima, num_blocks);
  for (std::int64_t b = 0; b < num_blocks; ++b) {
    load_block(x + b * kActivationBlock, inputs);
    const float amax = row.block(b).scale;
    const float scale = activation_scale(amax);
    const __m256i q = quantize_block(inputs, scale, &row.block(b));
    const bool is_outlier = amax > threshold;
    row.set_outlier(b, is_outlier);
    if (!is_outlier) {
      row.residual(b) = {};
      continue;
    }
    subtract_codes(inputs, q, scale);
    quantize_block(inputs, scale_or_zero(scale * kResidualScale), &row.residual(b));
  }
  return true;
}

// NaN and infinity included: their bits are the largest integers.
static float span_max(const float* x, int num_blocks) {
  float amax = 0.0f;
  for (int b = 0; b < num_blocks; ++b) {
    __m256 inputs[4];
    load_block(x + b * kActivationBlock, inputs);
    const float of_block = largest_magnitude(inputs);
    if (!(of_block <= amax)) amax = of_block;
    if (!(amax <= kLargestInput)) break;
  }
  return amax;
}

static void quantize_span(const float* x, std::int64_t begin, int num_blocks, float scale, bool is_outlier,
                          const ActivationRow& row) {
  const float residual_scale = is_outlier ? scale_or_zero(scale * kResidualScale) : 0.0f;
  for (std::int64_t b = begin; b < begin + num_blocks; ++b) {
    __m256 inputs[4];
    load_block(x + b * kActivationBlock, inputs);
    const __m256i q = quantize_block(inputs, scale, &row.block(b));
    row.set_outlier(b, is_outlier);
    if (is_outlier) {
      subtract_codes(inputs, q, scale);
      quantize_block(inputs, residual_scale, &row.residual(b));
    } else {
      row.residual(b) = {};
    }
  }
  gather_span_offsets(&row.block(begin), row.width, num_blocks);
  if (is_outlier) gather_span_offsets(&row.residual(begin), row.width, num_blocks);
}

bool quantize_row_wide(const float* x, std::int64_t k, std::int32_t token, std::int32_t num_tokens,
                       void* quantized) {
  constexpr std::int64_t kSpanInputs = kBlocksPerSpan * kActivationBlock;
  const ActivationRow row = activation_row(quantized, k, token, num_tokens);
  float sum_of_maxima = 0.0f;
  for (std::int64_t s = 0; s < num_spans(k); ++s) {
    const float amax = span_max(x + s * kSpanInputs, blocks_of_span(k, s));
    if (!(amax <= kLargestInput)) {
      zero_row(row, k / kActivationBlock);
      return false;
    }
    sum_of_maxima += amax;
  }
  const float threshold = outlier_threshold(sum_of_maxima, num_spans(k));
  for (std::int64_t s = 0; s < num_spans(k); ++s) {
    const float amax = span_max(x + s * kSpanInputs, blocks_of_span(k, s));
    quantize_span(x, s * kBlocksPerSpan, blocks_of_span(k, s), activation_scale(amax), amax > threshold, row);
  }
  return true;
}

}  // namespace kvasir::kernels::avx2
KVASIR_TARGET_END
