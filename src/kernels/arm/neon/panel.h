// The innermost part of a matmul of many tokens (generic/matmul/panel_quartet-inl.h) on NEON without dot products
// of bytes. dotprod/panel.h has the same names and gives the same integers.
#pragma once

#include <bit>

#include "kernels/arm/neon/dot.h"
#include "kernels/arm/neon/panel_codes.h"

namespace kvasir::kernels::neon {

// Adds to the dots of the tokens those of kNumGroupsOf4 groups of 4.
template <int kNumGroupsOf4, int kBits, int kVectors>
KVASIR_FORCE_INLINE void add_panel_groups_of_4(const PanelGroupOf4<kBits, kVectors>* codes,
                                               const std::int8_t* q, PanelDots<kVectors>& dots) {
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    CodeLanes groups_of_4[kNumGroupsOf4];
#pragma GCC unroll 8
    for (int j = 0; j < kNumGroupsOf4; ++j) groups_of_4[j] = load_panel_codes(codes[j].of[v]);
#pragma GCC unroll 4
    for (int t = 0; t < kPanelTokens; ++t) {
      dots[t][v] = add_groups_of_4<kBits, kNumGroupsOf4>(dots[t][v], groups_of_4,
                                                         q + t * sizeof(ActivationBlock));
    }
  }
}

#include "kernels/arm/neon/panel_outliers-inl.h"
#include "kernels/arm/neon/panel_dots-inl.h"

}  // namespace kvasir::kernels::neon
