// Quantising an activation row, four blocks of 32 inputs at a time. ref/quantize.cc is the definition.
#include <immintrin.h>

#include "kernels/activation.h"
#include "kernels/force_inline.h"
#include "kernels/w8a8.h"
#include "kernels/x86/kernels.h"
#include "kernels/x86/target_features.h"

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

// The largest |x| of each group of 4 of four blocks. Lane 4 i + j holds group of 4 i of: the first block's
// low half (j = 0), its high half (1), the second block's (2, 3); then the same of the third and fourth
// block. A NaN or infinity comes out as one, since their bits are the largest integers.
struct GroupMaxima {
  __m512i of_pair[2];
};

// In each 128 bits the larger of two neighbours: two of `a`, then two of `b`.
__m512i fold_neighbours(__m512i a, __m512i b) {
  const __m512 even = _mm512_shuffle_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b), 0b10'00'10'00);
  const __m512 odd = _mm512_shuffle_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b), 0b11'01'11'01);
  return _mm512_max_epi32(_mm512_castps_si512(even), _mm512_castps_si512(odd));
}

GroupMaxima group_maxima(const Inputs& x) {
  const __m512i magnitude = _mm512_set1_epi32(INT32_MAX);
  __m512i pairs[kBlocks];
#pragma GCC unroll 4
  for (int i = 0; i < kBlocks; ++i) {
    pairs[i] = fold_neighbours(_mm512_and_si512(_mm512_castps_si512(x.low[i]), magnitude),
                               _mm512_and_si512(_mm512_castps_si512(x.high[i]), magnitude));
  }
  return {{fold_neighbours(pairs[0], pairs[1]), fold_neighbours(pairs[2], pairs[3])}};
}

// The largest of each block's groups of 4.
__m128 block_maxima(const GroupMaxima& groups_of_4) {
  const __m512i blocks = fold_neighbours(groups_of_4.of_pair[0], groups_of_4.of_pair[1]);
  const __m256i two = _mm256_max_epi32(_mm512_castsi512_si256(blocks), _mm512_extracti32x8_epi32(blocks, 1));
  return _mm_castsi128_ps(_mm_max_epi32(_mm256_castsi256_si128(two), _mm256_extracti128_si256(two, 1)));
}

// Without the groups of 4 beyond the threshold.
GroupMaxima inliers(const GroupMaxima& groups_of_4, float threshold) {
  GroupMaxima rest;
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    const __mmask16 within = _mm512_cmp_ps_mask(_mm512_castsi512_ps(groups_of_4.of_pair[i]),
                                                _mm512_set1_ps(threshold), _CMP_LE_OQ);
    rest.of_pair[i] = _mm512_maskz_mov_epi32(within, groups_of_4.of_pair[i]);
  }
  return rest;
}

// block_scale
__m128 block_scales(__m128 inlier, __m128 largest) {
  const __m128 divisor = _mm_set1_ps(127.0f), least = _mm_set1_ps(kLeastScale);
  const __m128 scales = _mm_max_ps(_mm_max_ps(_mm_div_ps(inlier, divisor), least),
                                   _mm_div_ps(largest, _mm_set1_ps(kLargestCode)));
  return _mm_maskz_mov_ps(_mm_cmp_ps_mask(_mm_div_ps(largest, divisor), least, _CMP_GE_OQ), scales);
}
__m128 inverses(__m128 scales) {
  return _mm_maskz_div_ps(_mm_cmp_ps_mask(scales, _mm_setzero_ps(), _CMP_GT_OQ), _mm_set1_ps(1.0f), scales);
}

// Two blocks of codes as 16 bits each: in each 128 bits a group of 4 of the low half and one of the high
// half.
struct PairCodes {
  __m512i of_block[2];
};

// The nearest code to each input, ties to even.
__m512i round_to_codes(__m512 x, __m512 inverse) { return _mm512_cvtps_epi32(_mm512_mul_ps(x, inverse)); }
PairCodes round_to_codes(const Inputs& x, int first, const float* inverse) {
  PairCodes codes;
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    const __m512 factor = _mm512_set1_ps(inverse[first + i]);
    codes.of_block[i] = _mm512_packs_epi32(round_to_codes(x.low[first + i], factor),
                                           round_to_codes(x.high[first + i], factor));
  }
  return codes;
}
// Takes the outlier codes from the codes (outlier_code) and returns them.
PairCodes split_off_outliers(PairCodes& codes) {
  PairCodes outliers;
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    const __m512i code = codes.of_block[i];
    const __mmask32 too_large = _mm512_cmpgt_epi16_mask(_mm512_abs_epi16(code), _mm512_set1_epi16(127));
    const __m512i rounded = _mm512_add_epi16(code, _mm512_set1_epi16(1 << (kOutlierShift - 1)));
    outliers.of_block[i] = _mm512_maskz_srai_epi16(too_large, rounded, kOutlierShift);
    codes.of_block[i] = _mm512_sub_epi16(code, _mm512_slli_epi16(outliers.of_block[i], kOutlierShift));
  }
  return outliers;
}
// The two blocks' bytes, one block after the other.
__m512i to_bytes(const PairCodes& codes) {
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  return _mm512_permutexvar_epi32(order, _mm512_packs_epi16(codes.of_block[0], codes.of_block[1]));
}
__m512i group_of_4_sums(__m512i q) {
  return _mm512_dpbusd_epi32(_mm512_setzero_si512(), _mm512_set1_epi8(1), q);
}
__m128i offsets_of(__m128i sums) { return _mm_sub_epi32(_mm_setzero_si128(), _mm_slli_epi32(sums, 7)); }

template <typename Codes>
KVASIR_FORCE_INLINE void store_pair(__m512i bytes, Codes& first, Codes& second) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(first.q), _mm512_castsi512_si256(bytes));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(second.q), _mm512_extracti64x4_epi64(bytes, 1));
}

// Writes four blocks, the first of them `first`. Without kOutliers there is nothing for outlier codes.
template <bool kOutliers>
KVASIR_FORCE_INLINE void write_blocks(const Inputs& x, __m128 scales, const RowInputs& in, std::int64_t first,
                                      const ActivationRow& row) {
  alignas(16) float inverse[kBlocks];
  _mm_store_ps(inverse, inverses(scales));
  __m256i groups_of_4[kBlocks];  // sums of four codes
#pragma GCC unroll 2
  for (int i = 0; i < kBlocks; i += 2) {
    const std::int64_t b = in.index(first, i), next = in.index(first, i + 1);
    PairCodes codes = round_to_codes(x, i, inverse);
    __m512i outliers = _mm512_setzero_si512();
    if constexpr (kOutliers) outliers = to_bytes(split_off_outliers(codes));
    const __m512i q = to_bytes(codes);
    store_pair(q, row.block(b), row.block(next));
    store_pair(outliers, row.outliers(b), row.outliers(next));
    __m512i sums = group_of_4_sums(q);
    unsigned flags = 0;
    if constexpr (kOutliers) {
      sums = _mm512_add_epi32(sums, _mm512_slli_epi32(group_of_4_sums(outliers), kOutlierShift));
      flags = _mm512_test_epi32_mask(outliers, outliers);
    }
    row.set_outlier_groups(b, static_cast<int>(flags & 0xff));
    row.set_outlier_groups(next, static_cast<int>(flags >> 8));
    groups_of_4[i] = _mm512_castsi512_si256(sums);
    groups_of_4[i + 1] = _mm512_extracti64x4_epi64(sums, 1);
  }
  const __m256i halves = _mm256_hadd_epi32(_mm256_hadd_epi32(groups_of_4[0], groups_of_4[1]),
                                           _mm256_hadd_epi32(groups_of_4[2], groups_of_4[3]));
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
  float sum_of_roots = 0.0f;
  for (std::int64_t b = 0; b < in.num_blocks; b += kBlocks) {
    const __m128 maxima = block_maxima(group_maxima(in.load(b)));
    if (_mm_cmp_ps_mask(maxima, _mm_set1_ps(kLargestInput), _CMP_LE_OQ) != 0b1111) {
      zero_row(row, in.num_blocks);
      return false;
    }
    alignas(16) float largest[kBlocks], roots[kBlocks];
    _mm_store_ps(largest, maxima);
    _mm_store_ps(roots, _mm_sqrt_ps(_mm_sqrt_ps(maxima)));
    for (int i = 0; i < kBlocks && b + i < in.num_blocks; ++i) {
      row.block(b + i).scale = largest[i];  // until the second pass
      sum_of_roots += roots[i];
    }
  }
  const float threshold = outlier_threshold(sum_of_roots, in.num_blocks);
  for (std::int64_t b = 0; b < in.num_blocks; b += kBlocks) {
    const Inputs inputs = in.load(b);
    const __m128 largest = _mm_setr_ps(row.block(in.index(b, 0)).scale, row.block(in.index(b, 1)).scale,
                                       row.block(in.index(b, 2)).scale, row.block(in.index(b, 3)).scale);
    if (_mm_cmp_ps_mask(largest, _mm_set1_ps(threshold), _CMP_GT_OQ) == 0) {
      write_blocks<false>(inputs, block_scales(largest, largest), in, b, row);
    } else {
      const __m128 inlier = block_maxima(inliers(group_maxima(inputs), threshold));
      write_blocks<true>(inputs, block_scales(inlier, largest), in, b, row);
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
  for (int b = 0; b < num_blocks; b += kBlocks)
    four = larger(four, block_maxima(group_maxima(in.load(begin + b))));
  return largest_of_four(four);
}

void quantize_span(const RowInputs& in, std::int64_t begin, int num_blocks, float threshold,
                   const ActivationRow& row) {
  const float largest = span_max(in, begin, num_blocks);
  float inlier = largest;
  if (largest > threshold) {
    __m128 four = _mm_setzero_ps();
    for (int b = 0; b < num_blocks; b += kBlocks) {
      four = larger(four, block_maxima(inliers(group_maxima(in.load(begin + b)), threshold)));
    }
    inlier = largest_of_four(four);
  }
  const __m128 scales = _mm_set1_ps(block_scale(inlier, largest));
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

bool quantize_row_w8a8(const float* x, std::int64_t k, std::int32_t token, std::int32_t num_tokens,
                       void* quantized) {
  const ActivationRow row = activation_row(quantized, k, token, num_tokens);
  const RowInputs in{x, k / kActivationBlock};
  float sum_of_roots = 0.0f;
  for (std::int64_t s = 0; s < num_spans(k); ++s) {
    const float largest = span_max(in, s * kBlocksPerSpan, blocks_of_span(k, s));
    if (!(largest <= kLargestInput)) {
      zero_row(row, in.num_blocks);
      return false;
    }
    sum_of_roots += fourth_root(largest);
  }
  const float threshold = outlier_threshold(sum_of_roots, num_spans(k));
  for (std::int64_t s = 0; s < num_spans(k); ++s) {
    quantize_span(in, s * kBlocksPerSpan, blocks_of_span(k, s), threshold, row);
  }
  return true;
}

}  // namespace kvasir::kernels::avx512
KVASIR_TARGET_END
