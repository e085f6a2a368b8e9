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

// scale where it is large enough, else 0 (scale_or_zero).
__m128 scales_or_zero(__m128 scales) {
  return _mm_maskz_mov_ps(_mm_cmp_ps_mask(scales, _mm_set1_ps(kLeastScale), _CMP_GE_OQ), scales);
}
__m128 inverses(__m128 scales) {
  return _mm_maskz_div_ps(_mm_cmp_ps_mask(scales, _mm_setzero_ps(), _CMP_GT_OQ), _mm_set1_ps(1.0f), scales);
}

// 32 inputs to the nearest int8 each, ties to even.
__m256i round_to_int8(__m512 low, __m512 high, float inverse) {
  const __m512 factor = _mm512_set1_ps(inverse);
  const __m128i first = _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(_mm512_mul_ps(low, factor)));
  const __m128i last = _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(_mm512_mul_ps(high, factor)));
  return _mm256_inserti128_si256(_mm256_castsi128_si256(first), last, 1);
}

__m128i offsets_of(__m128i sums) { return _mm_sub_epi32(_mm_setzero_si128(), _mm_slli_epi32(sums, 7)); }

// Writes four blocks' codes, scales and sums to where `at(i)` says and returns the codes in `q`.
template <class At>
void write_blocks(const Inputs& x, __m128 scales, __m256i* q, const At& at) {
  alignas(16) float inverse[kBlocks];
  _mm_store_ps(inverse, inverses(scales));
  __m256i quads[kBlocks];  // sums of four codes
#pragma GCC unroll 4
  for (int i = 0; i < kBlocks; ++i) {
    q[i] = round_to_int8(x.low[i], x.high[i], inverse[i]);
    quads[i] = _mm256_dpbusd_epi32(_mm256_setzero_si256(), _mm256_set1_epi8(1), q[i]);
  }
  const __m256i halves =
      _mm256_hadd_epi32(_mm256_hadd_epi32(quads[0], quads[1]), _mm256_hadd_epi32(quads[2], quads[3]));
  const __m128i high = _mm256_extracti128_si256(halves, 1);
  const __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(halves), high);
  __m128 fields[kBlocks] = {scales, _mm_mul_ps(scales, _mm_cvtepi32_ps(sum)),
                            _mm_castsi128_ps(offsets_of(sum)), _mm_castsi128_ps(offsets_of(high))};
  _MM_TRANSPOSE4_PS(fields[0], fields[1], fields[2], fields[3]);
#pragma GCC unroll 4
  for (int i = 0; i < kBlocks; ++i) {
    ActivationBlock& block = at(i);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(block.q), q[i]);
    _mm_storeu_ps(&block.scale, fields[i]);
  }
}

__m512 widened(__m128i codes) { return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(codes)); }

// x - scale * q, each with one rounding.
void subtract_codes(Inputs& x, const __m256i* q, __m128 scales) {
  alignas(16) float scale[kBlocks];
  _mm_store_ps(scale, scales);
#pragma GCC unroll 4
  for (int i = 0; i < kBlocks; ++i) {
    const __m512 factor = _mm512_set1_ps(scale[i]);
    x.low[i] = _mm512_fnmadd_ps(factor, widened(_mm256_castsi256_si128(q[i])), x.low[i]);
    x.high[i] = _mm512_fnmadd_ps(factor, widened(_mm256_extracti128_si256(q[i], 1)), x.high[i]);
  }
}

}  // namespace

bool quantize_row(const float* x, std::int64_t k, std::int32_t token, std::int32_t num_tokens,
                  void* quantized) {
  const ActivationRow row = activation_row(quantized, k, token, num_tokens);
  const RowInputs in{x, k / kActivationBlock};
  float sum_of_maxima = 0.0f;
  for (std::int64_t b = 0; b < in.num_blocks; b += kBlocks) {
    alignas(16) float amax[kBlocks];
    _mm_store_ps(amax, largest_magnitudes(in.load(b)));
    for (int i = 0; i < kBlocks && b + i < in.num_blocks; ++i) {
      if (!(amax[i] <= kLargestInput)) {
        zero_row(row, in.num_blocks);
        return false;
      }
      sum_of_maxima += amax[i];
    }
  }
  const __m128 threshold = _mm_set1_ps(outlier_threshold(sum_of_maxima, in.num_blocks));
  for (std::int64_t b = 0; b < in.num_blocks; b += kBlocks) {
    Inputs inputs = in.load(b);
    const __m128 amax = largest_magnitudes(inputs);
    const __m128 scales = scales_or_zero(_mm_div_ps(amax, _mm_set1_ps(127.0f)));
    __m256i q[kBlocks];
    write_blocks(inputs, scales, q, [&](int i) -> ActivationBlock& { return row.block(in.index(b, i)); });
    const __mmask8 outliers = _mm_cmp_ps_mask(amax, threshold, _CMP_GT_OQ);
    for (int i = 0; i < kBlocks; ++i) row.set_outlier(in.index(b, i), (outliers >> i & 1) != 0);
    // A scale of 0 gives zeros.
    const __m128 residual_scales =
        _mm_maskz_mov_ps(outliers, scales_or_zero(_mm_mul_ps(scales, _mm_set1_ps(kResidualScale))));
    if (outliers == 0) {
      for (int i = 0; i < kBlocks; ++i) row.residual(in.index(b, i)) = {};
    } else {
      subtract_codes(inputs, q, scales);
      write_blocks(inputs, residual_scales, q,
                   [&](int i) -> ActivationBlock& { return row.residual(in.index(b, i)); });
    }
  }
  return true;
}

namespace {

// NaN and infinity included: their bits are the largest integers.
float span_max(const RowInputs& in, std::int64_t begin, int num_blocks) {
  __m128i four = _mm_setzero_si128();
  for (int b = 0; b < num_blocks; b += kBlocks) {
    four = _mm_max_epi32(four, _mm_castps_si128(largest_magnitudes(in.load(begin + b))));
  }
  four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0b01'00'11'10));
  four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0b10'11'00'01));
  return _mm_cvtss_f32(_mm_castsi128_ps(four));
}

void quantize_span(const RowInputs& in, std::int64_t begin, int num_blocks, float scale, bool is_outlier,
                   const ActivationRow& row) {
  const __m128 scales = _mm_set1_ps(scale);
  const __m128 residual_scales = _mm_set1_ps(is_outlier ? scale_or_zero(scale * kResidualScale) : 0.0f);
  for (int first = 0; first < num_blocks; first += kBlocks) {
    Inputs inputs = in.load(begin + first);
    const auto index = [&](int i) { return in.index(begin + first, i); };
    __m256i q[kBlocks];
    write_blocks(inputs, scales, q, [&](int i) -> ActivationBlock& { return row.block(index(i)); });
    for (int i = 0; i < kBlocks; ++i) {
      row.set_outlier(index(i), is_outlier);
      if (!is_outlier) row.residual(index(i)) = {};
    }
    if (!is_outlier) continue;
    subtract_codes(inputs, q, scales);
    write_blocks(inputs, residual_scales, q,
                 [&](int i) -> ActivationBlock& { return row.residual(index(i)); });
  }
  gather_span_offsets(&row.block(begin), row.width, num_blocks);
  if (is_outlier) gather_span_offsets(&row.residual(begin), row.width, num_blocks);
}

}  // namespace

bool quantize_row_wide(const float* x, std::int64_t k, std::int32_t token, std::int32_t num_tokens,
                       void* quantized) {
  const ActivationRow row = activation_row(quantized, k, token, num_tokens);
  const RowInputs in{x, k / kActivationBlock};
  float sum_of_maxima = 0.0f;
  for (std::int64_t s = 0; s < num_spans(k); ++s) {
    const float amax = span_max(in, s * kBlocksPerSpan, blocks_of_span(k, s));
    if (!(amax <= kLargestInput)) {
      zero_row(row, in.num_blocks);
      return false;
    }
    sum_of_maxima += amax;
  }
  const float threshold = outlier_threshold(sum_of_maxima, num_spans(k));
  for (std::int64_t s = 0; s < num_spans(k); ++s) {
    const float amax = span_max(in, s * kBlocksPerSpan, blocks_of_span(k, s));
    quantize_span(in, s * kBlocksPerSpan, blocks_of_span(k, s), activation_scale(amax), amax > threshold,
                  row);
  }
  return true;
}

}  // namespace kvasir::kernels::avx512
KVASIR_TARGET_END
