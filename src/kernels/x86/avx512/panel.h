// The innermost part of a matmul of many tokens (generic/matmul/panel_quartet-inl.h) on AVX-512 VNNI.
// avx2/panel.h has the same names and gives the same integers.
#pragma once

#include <bit>

#include "kernels/packed.h"
#include "kernels/x86/avx512/dot.h"

KVASIR_TARGET_BEGIN(KVASIR_TARGET_AVX512)
namespace kvasir::kernels::avx512 {

inline constexpr int kLeastTokensOfPanel = kLeastPanelTokens;
inline constexpr int kPanelTokens = 4;  // at a time
template <int kBits>
inline constexpr int kPanelBlocks = 16;
// By four tokens: 12 integer and 12 float sums, 3 codes and a broadcast in registers.
inline constexpr int kGroupsOfPanel = kGroupsPerPanel;

// A group of 4's codes of kVectors vectors of rows.
template <int kBits, int kVectors>
struct PanelGroupOf4 {
  std::uint8_t of[kVectors][kGroupOf4Bytes];
};

template <int kBits, int kZeroShift>
KVASIR_FORCE_INLINE void store_panel_codes(std::uint8_t* p, CodeLanes a) {
  _mm512_storeu_si512(p, a.v);
}
#include "kernels/generic/matmul/panel_starts-inl.h"

template <int kVectors>
using PanelDots = IntLanes[kPanelTokens][kVectors];

// Adds a group of 4, of which a token's activations are at q + t * kStride.
template <int kStride, int kBits, int kVectors>
KVASIR_FORCE_INLINE void add_panel_group_of_4(const PanelGroupOf4<kBits, kVectors>& codes,
                                              const std::int8_t* q, PanelDots<kVectors>& dots) {
  CodeLanes groups_of_4[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) groups_of_4[v] = load_codes(codes.of[v]);
#pragma GCC unroll 4
  for (int t = 0; t < kPanelTokens; ++t) {
    const GroupOf4Lanes group_of_4 = broadcast_group_of_4(q + t * kStride);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) dots[t][v] = add_group_of_4(dots[t][v], groups_of_4[v], group_of_4);
  }
}

// The dots of groups of 4 [kBegin, kEnd) of a block, the outlier codes first. `start_of` says where a token's
// start.
template <int kBegin, int kEnd, int kBits, int kVectors, class StartOf>
KVASIR_FORCE_INLINE void dot_panel(const PanelGroupOf4<kBits, kVectors> (&codes)[kGroupsOf4PerBlock],
                                   const QuartetBlock& in, const StartOf& start_of,
                                   PanelDots<kVectors>& dots) {
  unsigned outlier_groups = in.outlier_groups & ((1u << kEnd) - (1u << kBegin));
  if (outlier_groups == 0) {
#pragma GCC unroll 4
    for (int t = 0; t < kPanelTokens; ++t) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) dots[t][v] = start_of(in.x[t]);
    }
  } else {
#pragma GCC unroll 4
    for (int t = 0; t < kPanelTokens; ++t) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) dots[t][v] = zero_int_lanes();
    }
    do {
      const int j = std::countr_zero(outlier_groups);
      add_panel_group_of_4<sizeof(OutlierCodes)>(codes[j], in.outliers->q + 4 * j, dots);
      outlier_groups &= outlier_groups - 1;
    } while (outlier_groups != 0);
#pragma GCC unroll 4
    for (int t = 0; t < kPanelTokens; ++t) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) dots[t][v] = add_outliers(start_of(in.x[t]), dots[t][v]);
    }
  }
#pragma GCC unroll 8
  for (int j = kBegin; j < kEnd; ++j)
    add_panel_group_of_4<sizeof(ActivationBlock)>(codes[j], in.x->q + 4 * j, dots);
}

}  // namespace kvasir::kernels::avx512
KVASIR_TARGET_END
