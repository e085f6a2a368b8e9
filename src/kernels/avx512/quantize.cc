// Quantising an activation row, four blocks of 32 inputs at a time. ref/quantize.cc is the definition.
#include <immintrin.h>

#include "kernels/activation.h"
#include "kernels/matmul_kernels.h"
#include "kernels/target_region.h"
#include "kernels/wide.h"

KVASIR_TARGET_BEGIN(KVASIR_TARGET_AVX512)
namespace kvasir::kernels::avx512 {
namespace {

constexpr int kBlocks = 4;

// Four blocks of inputs. Where a row has no fourth block, its last stands in: it is computed again.
struct Inputs {
  __m512 low[kBlocks], high[kBlocks];  // inputs 0-15 and 16-31
};

struct RowInputs {
  const float* x;
  std::int64_t num_blocks;

  std::int64_t index(std::int64_t first, int i) const {
    return first + i < num_blocks ? first + i : num_blocks - 1;
  }
  Inputs load(std::int64_t first) const {
    Inputs inputs;
#pragma GCC unroll 4
    for (int i = 0; i < kBlocks; ++i) {
      const float* block = x + index(first, i) * kActivationBlock;
      inputs.low[i] = _mm512_loadu_ps(block);
      inputs.high[i] = _mm512_loadu_ps(block + 16);
    }
    return inputs;
  }
};

// The larger of lanes i and i + n / 2 of each operand, side by side.
__m512i fold_halves(__m512i a, __m512i b) {
  return _mm512_max_epi32(_mm512_shuffle_i32x4(a, b, 0b01'00'01'00),
                          _mm512_shuffle_i32x4(a, b, 0b11'10'11'10));
}

// The largest |x| of each block; a NaN or infinity comes out as one, since their bits are the largest
// integers.
__m128 largest_magnitudes(const Inputs& x) {
  const __m512i magnitude = _mm512_set1_epi32(INT32_MAX);
  __m512i lanes[kBlocks];
#pragma GCC unroll 4
  for (int i = 0; i < kBlocks; ++i) {
    lanes[i] = _mm512_max_epi32(_mm512_and_si512(_mm512_castps_si512(x.low[i]), magnitude),
                                _mm512_and_si512(_mm512_castps_si512(x.high[i]), magnitude));
  }
  const __m512i ab = fold_halves(lanes[0], lanes[1]), cd = fold_halves(lanes[2], lanes[3]);
  const __m512i four = _mm512_max_epi32(_mm512_shuffle_i32x4(ab, cd, 0b10'00'10'00),
                                        _mm512_shuffle_i32x4(ab, cd, 0b11'01'11'01));
  const __m512i two = _mm512_max_epi32(four, _mm512_shuffle_epi32(four, _MM_PERM_BADC));
  const __m512i one = _mm512_max_epi32(two, _mm512_shuffle_epi32(two, _MM_PERM_CDAB));
  const __m512i first_of_each = _mm512_setr_epi32(0, 4, 8, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
  return _mm_castsi128_ps(_mm512_castsi512_si128(_mm512_permutexvar_epi32(first_of_each, one)));
}

// The inputs without the quads that have a larger one than the threshold.
__m512 inliers(__m512 x, __m512 threshold) {
  const __m512i magnitude = _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(INT32_MAX));
  const __m512i two = _mm512_max_epi32(magnitude, _mm512_shuffle_epi32(magnitude, _MM_PERM_BADC));
  const __m512i four = _mm512_max_epi32(two, _mm512_shuffle_epi32(two, _MM_PERM_CDAB));
  return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(_mm512_castsi512_ps(four), threshold, _CMP_LE_OQ), x);
}
Inputs inliers(const Inputs& x, float threshold) {
  const __m512 limit = _mm512_set1_ps(threshold);
  Inputs rest;
#pragma GCC unroll 4
  for (int i = 0; i < kBlocks; ++i) {
    rest.low[i] = inliers(x.low[i], limit);
    rest.high[i] = inliers(x.high[i], limit);
  }
  return rest;
}

// fine_scale
__m128 fine_scales(__m128 inlier, __m128 largest) {
  const __m128 divisor = _mm_set1_ps(127.0f), least = _mm_set1_ps(kLeastScale);
  const __m128 scales = _mm_max_ps(_mm_max_ps(_mm_div_ps(inlier, divisor), least),
                                   _mm_div_ps(largest, _mm_set1_ps(kLargestCode)));
  return _mm_maskz_mov_ps(_mm_cmp_ps_mask(_mm_div_ps(largest, divisor), least, _CMP_GE_OQ), scales);
}
__m128 inverses(__m128 scales) {
  return _mm_maskz_div_ps(_mm_cmp_ps_mask(scales, _mm_setzero_ps(), _CMP_GT_OQ), _mm_set1_ps(1.0f), scales);
}

// 16 inputs to the nearest code each, ties to even.
__m512i round_to_codes(__m512 x, float inverse) {
  return _mm512_cvtps_epi32(_mm512_mul_ps(x, _mm512_set1_ps(inverse)));
}
// coarse_code
__m512i coarse_codes(__m512i codes) {
  const __mmask16 too_large = _mm512_cmpgt_epi32_mask(_mm512_abs_epi32(codes), _mm512_set1_epi32(127));
  const __m512i rounded = _mm512_add_epi32(codes, _mm512_set1_epi32(1 << (kCoarseShift - 1)));
  return _mm512_maskz_srai_epi32(too_large, rounded, kCoarseShift);
}
__m256i to_int8(__m512i low, __m512i high) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm512_cvtepi32_epi8(low)),
                                 _mm512_cvtepi32_epi8(high), 1);
}
__m256i quad_sums(__m256i q) { return _mm256_dpbusd_epi32(_mm256_setzero_si256(), _mm256_set1_epi8(1), q); }
__m128i offsets_of(__m128i sums) { return _mm_sub_epi32(_mm_setzero_si128(), _mm_slli_epi32(sums, 7)); }

// Writes four blocks, the first of them `first`. Without kOutliers there is nothing for coarse codes.
template <bool kOutliers>
void write_blocks(const Inputs& x, __m128 scales, const RowInputs& in, std::int64_t first,
                  const ActivationRow& row) {
  alignas(16) float inverse[kBlocks];
  _mm_store_ps(inverse, inverses(scales));
  __m256i quads[kBlocks];  // sums of four codes
#pragma GCC unroll 4
  for (int i = 0; i < kBlocks; ++i) {
    const std::int64_t b = in.index(first, i);
    __m512i low = round_to_codes(x.low[i], inverse[i]), high = round_to_codes(x.high[i], inverse[i]);
    __m256i coarse = _mm256_setzero_si256();
    if constexpr (kOutliers) {
      const __m512i coarse_low = coarse_codes(low), coarse_high = coarse_codes(high);
      low = _mm512_sub_epi32(low, _mm512_slli_epi32(coarse_low, kCoarseShift));
      high = _mm512_sub_epi32(high, _mm512_slli_epi32(coarse_high, kCoarseShift));
      coarse = to_int8(coarse_low, coarse_high);
    }
    const __m256i q = to_int8(low, high);
    quads[i] = quad_sums(q);
    if constexpr (kOutliers) {
      quads[i] = _mm256_add_epi32(quads[i], _mm256_slli_epi32(quad_sums(coarse), kCoarseShift));
    }
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(row.block(b).q), q);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(row.coarse(b).q), coarse);
    row.set_coarse_quads(b, kOutliers ? _mm256_cmpneq_epi32_mask(coarse, _mm256_setzero_si256()) : 0);
  }
  const __m256i halves =
      _mm256_hadd_epi32(_mm256_hadd_epi32(quads[0], quads[1]), _mm256_hadd_epi32(quads[2], quads[3]));
  const __m128i high = _mm256_extracti128_si256(halves, 1);
  const __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(halves), high);
  __m128 fields[kBlocks] = {scales, _mm_mul_ps(scales, _mm_cvtepi32_ps(sum)),
                            _mm_castsi128_ps(offsets_of(sum)), _mm_castsi128_ps(offsets_of(high))};
  _MM_TRANSPOSE4_PS(fields[0], fields[1], fields[2], fields[3]);
#pragma GCC unroll 4
  for (int i = 0; i < kBlocks; ++i) _mm_storeu_ps(&row.block(in.index(first, i)).scale, fields[i]);
}

}  // namespace

bool quantize_row(const float* x, std::int64_t k, std::int32_t token, std::int32_t num_tokens,
                  void* quantized) {
  const ActivationRow row = activation_row(quantized, k, token, num_tokens);
  const RowInputs in{x, k / kActivationBlock};
  float sum_of_maxima = 0.0f;
  for (std::int64_t b = 0; b < in.num_blocks; b += kBlocks) {
    alignas(16) float largest[kBlocks];
    _mm_store_ps(largest, largest_magnitudes(in.load(b)));
    for (int i = 0; i < kBlocks && b + i < in.num_blocks; ++i) {
      if (!(largest[i] <= kLargestInput)) {
        zero_row(row, in.num_blocks);
        return false;
      }
      sum_of_maxima += largest[i];
    }
  }
  const float threshold = outlier_threshold(sum_of_maxima, in.num_blocks);
  for (std::int64_t b = 0; b < in.num_blocks; b += kBlocks) {
    const Inputs inputs = in.load(b);
    const __m128 largest = largest_magnitudes(inputs);
    if (_mm_cmp_ps_mask(largest, _mm_set1_ps(threshold), _CMP_GT_OQ) == 0) {
      write_blocks<false>(inputs, fine_scales(largest, largest), in, b, row);
    } else {
      const __m128 inlier = largest_magnitudes(inliers(inputs, threshold));
      write_blocks<true>(inputs, fine_scales(inlier, largest), in, b, row);
    }
  }
  return true;
}

namespace {

float largest_of_four(__m128 magnitudes) {
  __m128i four = _mm_castps_si128(magnitudes);
  four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0b01'00'11'10));
  four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0b10'11'00'01));
  return _mm_cvtss_f32(_mm_castsi128_ps(four));
}

// The larger of each as integers: NaN and infinity included, since their bits are the largest ones.
__m128 larger(__m128 a, __m128 b) {
  return _mm_castsi128_ps(_mm_max_epi32(_mm_castps_si128(a), _mm_castps_si128(b)));
}

float span_max(const RowInputs& in, std::int64_t begin, int num_blocks) {
  __m128 four = _mm_setzero_ps();
  for (int b = 0; b < num_blocks; b += kBlocks) four = larger(four, largest_magnitudes(in.load(begin + b)));
  return largest_of_four(four);
}

void quantize_span(const RowInputs& in, std::int64_t begin, int num_blocks, float threshold,
                   const ActivationRow& row) {
  const float largest = span_max(in, begin, num_blocks);
  float inlier = largest;
  if (largest > threshold) {
    __m128 four = _mm_setzero_ps();
    for (int b = 0; b < num_blocks; b += kBlocks) {
      four = larger(four, largest_magnitudes(inliers(in.load(begin + b), threshold)));
    }
    inlier = largest_of_four(four);
  }
  const __m128 scales = _mm_set1_ps(fine_scale(inlier, largest));
  for (int b = 0; b < num_blocks; b += kBlocks) {
    if (inlier < largest) {
      write_blocks<true>(in.load(begin + b), scales, in, begin + b, row);
    } else {
      write_blocks<false>(in.load(begin + b), scales, in, begin + b, row);
    }
  }
  gather_span_offsets(&row.block(begin), row.width, num_blocks);
}

}  // namespace

bool quantize_row_wide(const float* x, std::int64_t k, std::int32_t token, std::int32_t num_tokens,
                       void* quantized) {
  const ActivationRow row = activation_row(quantized, k, token, num_tokens);
  const RowInputs in{x, k / kActivationBlock};
  float sum_of_maxima = 0.0f;
  for (std::int64_t s = 0; s < num_spans(k); ++s) {
    const float largest = span_max(in, s * kBlocksPerSpan, blocks_of_span(k, s));
    if (!(largest <= kLargestInput)) {
      zero_row(row, in.num_blocks);
      return false;
    }
    sum_of_maxima += largest;
  }
  const float threshold = outlier_threshold(sum_of_maxima, num_spans(k));
  for (std::int64_t s = 0; s < num_spans(k); ++s) {
    quantize_span(in, s * kBlocksPerSpan, blocks_of_span(k, s), threshold, row);
  }
  return true;
}

}  // namespace kvasir::kernels::avx512
KVASIR_TARGET_END
