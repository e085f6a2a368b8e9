// The innermost part of a matmul of many tokens (generic/matmul/panel_quartet-inl.h) on AVX2. avx512/panel.h
// has the same names and gives the same integers.
#pragma once

#include <bit>

#include "kernels/packed.h"
#include "kernels/x86/avx2/dot.h"

KVASIR_TARGET_BEGIN(KVASIR_TARGET_AVX2)
namespace kvasir::kernels::avx2 {

inline constexpr int kLeastTokensOfPanel = 16;
inline constexpr int kPanelTokens = 4;  // at a time
template <int kBits>
inline constexpr int kPanelBlocks = kBits == 8 ? 16 : 20;
inline constexpr int kGroupsOfPanel = 1;

// Codes of 8 bits lie in a panel as two vectors of nibbles, unsigned, the low ones first: so their products
// too can be added in 16 bits, which takes 9/8 multiplications for each and no signs.
template <int kBits>
inline constexpr int kPanelPlanes = kBits == 8 ? 2 : 1;
template <int kBits>
inline constexpr int kPlaneBits = kBits == 8 ? 4 : kBits;

// A group of 4's codes of kVectors vectors of rows.
template <int kBits, int kVectors>
struct PanelGroupOf4 {
  std::uint8_t of[kVectors][kPanelPlanes<kBits> * 4 * kLanes];
};

template <int kBits, int kZeroShift>
KVASIR_FORCE_INLINE void store_panel_codes(std::uint8_t* p, CodeLanes a) {
  auto* planes = reinterpret_cast<__m256i*>(p);
  if constexpr (kBits == 8) {
    const CodeLanes codes = {_mm256_xor_si256(a.v, _mm256_set1_epi8(INT8_MIN))};
    _mm256_store_si256(planes, low_nibbles<0>(codes).v);
    _mm256_store_si256(planes + 1, high_nibbles<0>(codes).v);
  } else {
    _mm256_store_si256(planes, a.v);
  }
}
// start_sum for the codes of a panel.
template <int kBits, int kZeroShift>
KVASIR_FORCE_INLINE IntLanes start_panel_sum_at(std::int32_t offset) {
  if constexpr (kZeroShift == 0) return zero_int_lanes();
  return {_mm256_srai_epi32(_mm256_set1_epi32(offset), 7 - kZeroShift)};
}
template <int kBits, int kZeroShift>
KVASIR_FORCE_INLINE IntLanes start_panel_sum(const ActivationBlock& x) {
  return start_panel_sum_at<kBits, kZeroShift>(x.offset);
}
// start_low_sum and start_high_sum for the codes of a panel.
template <int kBits, int kZeroShift>
KVASIR_FORCE_INLINE IntLanes start_low_panel_sum(const ActivationBlock& x) {
  return start_panel_sum_at<kBits, kZeroShift>(x.offset - x.offset_high);
}
template <int kBits, int kZeroShift>
KVASIR_FORCE_INLINE IntLanes start_high_panel_sum(const ActivationBlock& x) {
  return start_panel_sum_at<kBits, kZeroShift>(x.offset_high);
}

// The 16-bit sums of pairs of products of kNumGroupsOf4 groups of 4 of a token.
template <int kVectors, int kPlanes>
struct PairSums {
  __m256i of[kVectors][kPlanes];
};

// Adds the group of 4's products.
template <bool kIsFirst, int kVectors, int kPlanes>
KVASIR_FORCE_INLINE void add_pairs(const __m256i (&codes)[kVectors][kPlanes], GroupOf4Lanes group_of_4,
                                   PairSums<kVectors, kPlanes>& pairs) {
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; ++v) {
#pragma GCC unroll 2
    for (int p = 0; p < kPlanes; ++p) {
      const __m256i products = _mm256_maddubs_epi16(codes[v][p], group_of_4.v);
      pairs.of[v][p] = kIsFirst ? products : in_order(_mm256_add_epi16(pairs.of[v][p], products));
    }
  }
}

// The sums of a vector in 32 bits, the second plane's times 16.
template <int kPlanes>
KVASIR_FORCE_INLINE __m256i widen(const __m256i (&pairs)[kPlanes]) {
  const __m256i sum = _mm256_madd_epi16(pairs[0], _mm256_set1_epi16(1));
  if constexpr (kPlanes == 1) return sum;
  return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs[kPlanes - 1], _mm256_set1_epi16(16)));
}

template <int kVectors>
using PanelDots = IntLanes[kPanelTokens][kVectors];

// Adds to the dots of kTokens tokens those of kNumGroupsOf4 groups of 4; a token's activations are at q + t *
// kStride.
template <int kTokens, int kNumGroupsOf4, int kStride, int kBits, int kVectors>
KVASIR_FORCE_INLINE void add_panel_groups_of_4(const PanelGroupOf4<kBits, kVectors>* codes,
                                               const std::int8_t* q, IntLanes (*dots)[kVectors]) {
  constexpr int kPlanes = kPanelPlanes<kBits>;
  constexpr int kExact = exact_groups_of_4(kPlaneBits<kBits>);
  constexpr int kStep = kExact < kNumGroupsOf4 ? kExact : kNumGroupsOf4;
#pragma GCC unroll 4
  for (int begin = 0; begin < kNumGroupsOf4; begin += kStep) {
    PairSums<kVectors, kPlanes> pairs[kTokens];
#pragma GCC unroll 8
    for (int j = begin; j < begin + kStep; ++j) {
      __m256i groups_of_4[kVectors][kPlanes];
      const auto* planes = reinterpret_cast<const __m256i*>(codes[j].of);
#pragma GCC unroll 4
      for (int i = 0; i < kVectors * kPlanes; ++i) groups_of_4[i / kPlanes][i % kPlanes] = planes[i];
#pragma GCC unroll 4
      for (int t = 0; t < kTokens; ++t) {
        const GroupOf4Lanes group_of_4 = broadcast_group_of_4(q + t * kStride + 4 * j);
        if (j == begin) {
          add_pairs<true>(groups_of_4, group_of_4, pairs[t]);
        } else {
          add_pairs<false>(groups_of_4, group_of_4, pairs[t]);
        }
      }
    }
#pragma GCC unroll 4
    for (int t = 0; t < kTokens; ++t) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        dots[t][v] = {_mm256_add_epi32(dots[t][v].v, widen(pairs[t].of[v]))};
      }
    }
  }
}

// The dots of groups of 4 [kBegin, kEnd) of a block. `start_of` says where a token's start.
template <int kBegin, int kEnd, int kBits, int kVectors, class StartOf>
KVASIR_FORCE_INLINE void dot_panel(const PanelGroupOf4<kBits, kVectors> (&codes)[kGroupsOf4PerBlock],
                                   const QuartetBlock& in, const StartOf& start_of,
                                   PanelDots<kVectors>& dots) {
  constexpr int kNumGroupsOf4 = kEnd - kBegin;
  // The 16 registers hold at most 8 sums of pairs, and as many dots where these are added to repeatedly.
  constexpr bool kAddsOnce = exact_groups_of_4(kPlaneBits<kBits>) >= kNumGroupsOf4;
  constexpr int kTokens = kAddsOnce && kPanelPlanes<kBits> == 1 ? kPanelTokens : kPanelTokens / 2;
#pragma GCC unroll 4
  for (int first = 0; first < kPanelTokens; first += kTokens) {
#pragma GCC unroll 4
    for (int t = 0; t < kTokens; ++t) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) dots[first + t][v] = zero_int_lanes();
    }
    add_panel_groups_of_4<kTokens, kNumGroupsOf4, sizeof(ActivationBlock)>(
        codes + kBegin, in.x[first].q + 4 * kBegin, dots + first);
#pragma GCC unroll 4
    for (int t = 0; t < kTokens; ++t) {
      const IntLanes start = start_of(in.x[first + t]);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v)
        dots[first + t][v].v = _mm256_add_epi32(dots[first + t][v].v, start.v);
    }
  }
  unsigned outlier_groups = in.outlier_groups & ((1u << kEnd) - (1u << kBegin));
  if (outlier_groups == 0) return;
  PanelDots<kVectors> outliers;
#pragma GCC unroll 4
  for (int t = 0; t < kPanelTokens; ++t) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) outliers[t][v] = zero_int_lanes();
  }
  do {
    const int j = std::countr_zero(outlier_groups);
    add_panel_groups_of_4<kPanelTokens, 1, sizeof(OutlierCodes)>(codes + j, in.outliers->q + 4 * j, outliers);
    outlier_groups &= outlier_groups - 1;
  } while (outlier_groups != 0);
#pragma GCC unroll 4
  for (int t = 0; t < kPanelTokens; ++t) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) dots[t][v] = add_outliers(dots[t][v], outliers[t][v]);
  }
}

}  // namespace kvasir::kernels::avx2
KVASIR_TARGET_END
