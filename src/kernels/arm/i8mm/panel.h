// The innermost part of a matmul of many tokens (generic/matmul/panel_quartet-inl.h) with SMMLA, which multiplies
// two rows of eight bytes by two tokens' eight. It gives the integers of SDOT, with half as many products.
#pragma once

#include <bit>

#include "kernels/arm/dotprod/dot.h"
#include "kernels/arm/neon/panel_codes.h"

KVASIR_TARGET_BEGIN(KVASIR_TARGET_I8MM)
namespace kvasir::kernels::i8mm {

using namespace dotprod;  // and NEON's, which that uses

// Two groups of 4 lie together: eight codes of a row side by side, two rows in a vector. The first four rows of
// a vector of eight are where the codes of the first group would be, the others where those of the second.
template <int kBits, int kVectors>
struct PanelGroupOf4 {
  std::uint8_t of[kVectors][4 * kLanes];
};
KVASIR_FORCE_INLINE void store_row_pairs(std::uint8_t* p, int8x16_t first, int8x16_t second) {
  const int32x4_t a = vreinterpretq_s32_s8(first), b = vreinterpretq_s32_s8(second);
  vst1q_u8(p, vreinterpretq_u8_s32(vzip1q_s32(a, b)));
  vst1q_u8(p + 16, vreinterpretq_u8_s32(vzip2q_s32(a, b)));
}
template <int kBits, int kVectors>
KVASIR_FORCE_INLINE void store_panel_block(const CodeLanes* codes, int v,
                                           PanelGroupOf4<kBits, kVectors> (&panel)[kGroupsOf4PerBlock]) {
#pragma GCC unroll 4
  for (int j = 0; j < kGroupsOf4PerBlock; j += 2) {
    store_row_pairs(panel[j].of[v], codes[j].a, codes[j + 1].a);
    store_row_pairs(panel[j + 1].of[v], codes[j].b, codes[j + 1].b);
  }
}
// The codes of group of 4 j of four rows that lie at p.
KVASIR_FORCE_INLINE int8x16_t load_group_of_4(const std::uint8_t* p, int j) {
  const int32x4_t a = vreinterpretq_s32_u8(vld1q_u8(p)), b = vreinterpretq_s32_u8(vld1q_u8(p + 16));
  return vreinterpretq_s8_s32(j % 2 == 0 ? vuzp1q_s32(a, b) : vuzp2q_s32(a, b));
}

// The dots of two rows with two tokens: row 0 by token 0, row 0 by token 1, row 1 by token 0 ...
inline constexpr int kRowPairs = kLanes / 2, kTokenPairs = kPanelTokens / 2;

// Adds to the dots of the tokens those of kNumGroupsOf4 groups of 4: a vector of rows at a time, whose eight sums
// and all activations fit the registers.
template <int kNumGroupsOf4, int kBits, int kVectors>
KVASIR_FORCE_INLINE void add_panel_groups_of_4(const PanelGroupOf4<kBits, kVectors>* codes,
                                               const std::int8_t* q, PanelDots<kVectors>& dots) {
  int8x16_t inputs[kNumGroupsOf4 / 2][kTokenPairs];
#pragma GCC unroll 2
  for (int j = 0; j < kNumGroupsOf4; j += 4) {
#pragma GCC unroll 2
    for (int t = 0; t < kTokenPairs; ++t) {
      const std::int8_t* const first = q + 2 * t * sizeof(ActivationBlock) + 4 * j;
      const int64x2_t a = vreinterpretq_s64_s8(vld1q_s8(first)),
                      b = vreinterpretq_s64_s8(vld1q_s8(first + sizeof(ActivationBlock)));
      inputs[j / 2][t] = vreinterpretq_s8_s64(vzip1q_s64(a, b));
      inputs[j / 2 + 1][t] = vreinterpretq_s8_s64(vzip2q_s64(a, b));
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    int32x4_t sums[kRowPairs][kTokenPairs];
#pragma GCC unroll 2
    for (int t = 0; t < kTokenPairs; ++t) {
      const IntLanes even = dots[2 * t][v], odd = dots[2 * t + 1][v];
      sums[0][t] = vzip1q_s32(even.a, odd.a);
      sums[1][t] = vzip2q_s32(even.a, odd.a);
      sums[2][t] = vzip1q_s32(even.b, odd.b);
      sums[3][t] = vzip2q_s32(even.b, odd.b);
    }
#pragma GCC unroll 4
    for (int j = 0; j < kNumGroupsOf4; j += 2) {
#pragma GCC unroll 4
      for (int r = 0; r < kRowPairs; ++r) {
        const int8x16_t rows = load16_codes(codes[j + r / 2].of[v] + 16 * (r % 2));
#pragma GCC unroll 2
        for (int t = 0; t < kTokenPairs; ++t) sums[r][t] = vmmlaq_s32(sums[r][t], rows, inputs[j / 2][t]);
      }
    }
#pragma GCC unroll 2
    for (int t = 0; t < kTokenPairs; ++t) {
      dots[2 * t][v] = {vuzp1q_s32(sums[0][t], sums[1][t]), vuzp1q_s32(sums[2][t], sums[3][t])};
      dots[2 * t + 1][v] = {vuzp2q_s32(sums[0][t], sums[1][t]), vuzp2q_s32(sums[2][t], sums[3][t])};
    }
  }
}

// The codes of group of 4 j of the v-th vector of rows.
template <int kBits, int kVectors>
KVASIR_FORCE_INLINE CodeLanes load_panel_group_of_4(const PanelGroupOf4<kBits, kVectors>* codes, int j, int v) {
  const PanelGroupOf4<kBits, kVectors>* const pair = codes + j / 2 * 2;
  return {load_group_of_4(pair[0].of[v], j), load_group_of_4(pair[1].of[v], j)};
}

#include "kernels/arm/neon/panel_outliers-inl.h"
#include "kernels/arm/neon/panel_dots-inl.h"

}  // namespace kvasir::kernels::i8mm
KVASIR_TARGET_END
