// The innermost part of a matmul of many tokens (generic/matmul/panel_quartet-inl.h) with SDOT. neon/panel.h has
// the same names and gives the same integers.
#pragma once

#include <bit>

#include "kernels/arm/dotprod/dot.h"
#include "kernels/arm/neon/panel_codes.h"

KVASIR_TARGET_BEGIN(KVASIR_TARGET_DOTPROD)
namespace kvasir::kernels::dotprod {

// The codes of one group of 4 by those of the activations that are in lane kGroup.
template <int kGroup, int kBits, int kVectors>
KVASIR_FORCE_INLINE void add_panel_quarter(const PanelGroupOf4<kBits, kVectors>& codes,
                                           const int8x16_t (&q)[kPanelTokens], PanelDots<kVectors>& dots) {
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    const CodeLanes group_of_4 = load_panel_codes(codes.of[v]);
#pragma GCC unroll 4
    for (int t = 0; t < kPanelTokens; ++t) dots[t][v] = add_quarter<kGroup>(dots[t][v], group_of_4, q[t]);
  }
}

// Adds to the dots of the tokens those of kNumGroupsOf4 groups of 4: sixteen integer sums, four vectors of
// activations and two of codes in registers.
template <int kNumGroupsOf4, int kBits, int kVectors>
KVASIR_FORCE_INLINE void add_panel_groups_of_4(const PanelGroupOf4<kBits, kVectors>* codes,
                                               const std::int8_t* q, PanelDots<kVectors>& dots) {
#pragma GCC unroll 2
  for (int j = 0; j < kNumGroupsOf4; j += 4) {
    int8x16_t of_tokens[kPanelTokens];
#pragma GCC unroll 4
    for (int t = 0; t < kPanelTokens; ++t) of_tokens[t] = vld1q_s8(q + t * sizeof(ActivationBlock) + 4 * j);
    add_panel_quarter<0>(codes[j], of_tokens, dots);
    add_panel_quarter<1>(codes[j + 1], of_tokens, dots);
    add_panel_quarter<2>(codes[j + 2], of_tokens, dots);
    add_panel_quarter<3>(codes[j + 3], of_tokens, dots);
  }
}

#include "kernels/arm/neon/panel_outliers-inl.h"
#include "kernels/arm/neon/panel_dots-inl.h"

}  // namespace kvasir::kernels::dotprod
KVASIR_TARGET_END
