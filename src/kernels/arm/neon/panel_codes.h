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

// start_sum for the codes of a panel.
template <int kBits, int kZeroShift>
KVASIR_FORCE_INLINE IntLanes start_panel_sum(const ActivationBlock& x) {
  return start_sum<kBits, kZeroShift>(x);
}
// start_low_sum and start_high_sum for the codes of a panel.
template <int kBits, int kZeroShift>
KVASIR_FORCE_INLINE IntLanes start_low_panel_sum(const ActivationBlock& x) {
  return start_low_sum<kBits, kZeroShift>(x);
}
template <int kBits, int kZeroShift>
KVASIR_FORCE_INLINE IntLanes start_high_panel_sum(const ActivationBlock& x) {
  return start_high_sum<kBits, kZeroShift>(x);
}

template <int kVectors>
using PanelDots = IntLanes[kPanelTokens][kVectors];

}  // namespace kvasir::kernels::neon
