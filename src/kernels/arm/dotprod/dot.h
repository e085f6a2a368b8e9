// Integer dots of 8 packed rows with SDOT, which adds four products of signed bytes to each lane. neon/dot.h has
// the same names and gives the same integers.
#pragma once

#include "kernels/arm/neon/lanes.h"
#include "kernels/arm/target_features.h"

KVASIR_TARGET_BEGIN(KVASIR_TARGET_DOTPROD)
namespace kvasir::kernels::dotprod {

using namespace neon;  // rows, their float sums and how their codes are decoded

// sum + the dot of each row's four codes with four activations: the codes are signed, or small.
KVASIR_FORCE_INLINE IntLanes add_byte_group_of_4(IntLanes sum, CodeLanes codes, GroupOf4Lanes group_of_4) {
  return {vdotq_s32(sum.a, codes.a, group_of_4.v), vdotq_s32(sum.b, codes.b, group_of_4.v)};
}
template <int kBits>
KVASIR_FORCE_INLINE IntLanes add_group_of_4(IntLanes sum, const CodeLanes& codes, const std::int8_t* q) {
  return add_byte_group_of_4(sum, codes, broadcast_group_of_4(q));
}

// As add_byte_group_of_4, with group kGroup of sixteen activations.
template <int kGroup>
KVASIR_FORCE_INLINE IntLanes add_quarter(IntLanes sum, CodeLanes codes, int8x16_t q) {
  return {vdotq_laneq_s32(sum.a, codes.a, q, kGroup), vdotq_laneq_s32(sum.b, codes.b, q, kGroup)};
}
// sum + the dot of each row's sixteen codes with sixteen activations.
KVASIR_FORCE_INLINE IntLanes add_half(IntLanes sum, const CodeLanes* codes, int8x16_t q) {
  sum = add_quarter<0>(sum, codes[0], q);
  sum = add_quarter<1>(sum, codes[1], q);
  sum = add_quarter<2>(sum, codes[2], q);
  return add_quarter<3>(sum, codes[3], q);
}

// dots[t] += sum over a block of code * q of token t; the tokens' blocks are neighbours.
template <int kBits, int kTokens>
KVASIR_FORCE_INLINE void dot_blocks(const CodeLanes* codes, const ActivationBlock* x, IntLanes* dots) {
#pragma GCC unroll 16
  for (int t = 0; t < kTokens; ++t) {
    dots[t] = add_half(dots[t], codes, vld1q_s8(x[t].q));
    dots[t] = add_half(dots[t], codes + 4, vld1q_s8(x[t].q + 16));
  }
}

// As dot_blocks, over the first and the last 16 inputs apart.
template <int kBits, int kTokens>
KVASIR_FORCE_INLINE void dot_half_blocks(const CodeLanes* codes, const ActivationBlock* x, IntLanes* low,
                                         IntLanes* high) {
#pragma GCC unroll 16
  for (int t = 0; t < kTokens; ++t) {
    low[t] = add_half(low[t], codes, vld1q_s8(x[t].q));
    high[t] = add_half(high[t], codes + 4, vld1q_s8(x[t].q + 16));
  }
}

}  // namespace kvasir::kernels::dotprod
KVASIR_TARGET_END
