// Integer dots of 8 packed rows on NEON without dot products of bytes. dotprod/dot.h has the same names and gives
// the same integers.
#pragma once

#include "kernels/arm/neon/lanes.h"

namespace kvasir::kernels::neon {

// How many products of groups of 4 of b-bit codes can be added in 16 bits, so that the sum of two such sums stays
// below 2^15 too (15 * 127 * 2 * 8, 31 * 127 * 2 * 4, 63 * 127 * 2 * 2, 128 * 127 * 2).
constexpr int exact_groups_of_4(int num_bits) {
  return num_bits == 4 ? 8 : num_bits == 5 ? 4 : num_bits == 6 ? 2 : 1;
}

// The products of the inputs of 4 rows with their codes, two rows in each.
struct PairSums {
  int16x8_t low, high;
};
template <bool kIsFirst>
KVASIR_FORCE_INLINE void add_pairs(PairSums& sums, int8x16_t codes, int8x16_t group_of_4) {
  if constexpr (kIsFirst) {
    sums.low = vmull_s8(vget_low_s8(codes), vget_low_s8(group_of_4));
    sums.high = vmull_high_s8(codes, group_of_4);
  } else {
    sums.low = vmlal_s8(sums.low, vget_low_s8(codes), vget_low_s8(group_of_4));
    sums.high = vmlal_high_s8(sums.high, codes, group_of_4);
  }
}
KVASIR_FORCE_INLINE int32x4_t add_widened(int32x4_t sum, const PairSums& sums) {
  return vpadalq_s16(sum, vpaddq_s16(sums.low, sums.high));
}

// sum + the dot of kNumGroupsOf4 groups of 4, without overflow.
template <int kBits, int kNumGroupsOf4>
KVASIR_FORCE_INLINE IntLanes add_groups_of_4(IntLanes sum, const CodeLanes* codes, const std::int8_t* q) {
  constexpr int kStep = exact_groups_of_4(kBits) < kNumGroupsOf4 ? exact_groups_of_4(kBits) : kNumGroupsOf4;
#pragma GCC unroll 8
  for (int j = 0; j < kNumGroupsOf4; j += kStep) {
    PairSums of_a, of_b;
    const int8x16_t first = broadcast_group_of_4(q + 4 * j).v;
    add_pairs<true>(of_a, codes[j].a, first);
    add_pairs<true>(of_b, codes[j].b, first);
#pragma GCC unroll 8
    for (int i = j + 1; i < j + kStep; ++i) {
      const int8x16_t group_of_4 = broadcast_group_of_4(q + 4 * i).v;
      add_pairs<false>(of_a, codes[i].a, group_of_4);
      add_pairs<false>(of_b, codes[i].b, group_of_4);
    }
    sum = {add_widened(sum.a, of_a), add_widened(sum.b, of_b)};
  }
  return sum;
}

// sum + the dot of each row's four codes with four activations.
template <int kBits>
KVASIR_FORCE_INLINE IntLanes add_group_of_4(IntLanes sum, const CodeLanes& codes, const std::int8_t* q) {
  return add_groups_of_4<kBits, 1>(sum, &codes, q);
}
// The same of codes of load_byte_codes.
KVASIR_FORCE_INLINE IntLanes add_byte_group_of_4(IntLanes sum, CodeLanes codes, GroupOf4Lanes group_of_4) {
  PairSums of_a, of_b;
  add_pairs<true>(of_a, codes.a, group_of_4.v);
  add_pairs<true>(of_b, codes.b, group_of_4.v);
  return {add_widened(sum.a, of_a), add_widened(sum.b, of_b)};
}

// dots[t] += sum over a block of code * q of token t; the tokens' blocks are neighbours.
template <int kBits, int kTokens>
KVASIR_FORCE_INLINE void dot_blocks(const CodeLanes* codes, const ActivationBlock* x, IntLanes* dots) {
#pragma GCC unroll 16
  for (int t = 0; t < kTokens; ++t) dots[t] = add_groups_of_4<kBits, 8>(dots[t], codes, x[t].q);
}

// As dot_blocks, over the first and the last 16 inputs apart.
template <int kBits, int kTokens>
KVASIR_FORCE_INLINE void dot_half_blocks(const CodeLanes* codes, const ActivationBlock* x, IntLanes* low,
                                         IntLanes* high) {
#pragma GCC unroll 16
  for (int t = 0; t < kTokens; ++t) {
    low[t] = add_groups_of_4<kBits, 4>(low[t], codes, x[t].q);
    high[t] = add_groups_of_4<kBits, 4>(high[t], codes + 4, x[t].q + 16);
  }
}

}  // namespace kvasir::kernels::neon
