// The shape of a panel (generic/matmul/panel-inl.h) of 8-row vectors on ARM, and where its sums start.
#pragma once

#include "kernels/arm/neon/lanes.h"
#include "kernels/packed.h"

namespace kvasir::kernels::neon {

inline constexpr int kLeastTokensOfPanel = 12;  // more sums than that do not fit the registers of a tile
inline constexpr int kPanelTokens = 4;          // at a time
template <int kBits>
inline constexpr int kPanelBlocks = 20;
inline constexpr int kGroupsOfPanel = 1;

// A group of 4's codes of kVectors vectors of rows.
template <int kBits, int kVectors>
struct PanelGroupOf4 {
  std::uint8_t of[kVectors][4 * kLanes];
};

template <int kBits, int kZeroShift>
KVASIR_FORCE_INLINE void store_panel_codes(std::uint8_t* p, CodeLanes codes) {
  vst1q_u8(p, vreinterpretq_u8_s8(codes.a));
  vst1q_u8(p + 16, vreinterpretq_u8_s8(codes.b));
}
// As they were stored.
KVASIR_FORCE_INLINE CodeLanes load_panel_codes(const std::uint8_t* p) { return load_codes(p); }
// The codes of group of 4 j of the v-th vector of rows.
template <int kBits, int kVectors>
KVASIR_FORCE_INLINE CodeLanes load_panel_group_of_4(const PanelGroupOf4<kBits, kVectors>* codes, int j, int v) {
  return load_panel_codes(codes[j].of[v]);
}

#include "kernels/generic/matmul/panel_starts-inl.h"

template <int kVectors>
using PanelDots = IntLanes[kPanelTokens][kVectors];

}  // namespace kvasir::kernels::neon
