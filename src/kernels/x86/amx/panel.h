// A panel's shape on AMX (generic/matmul/panel-inl.h): what tiles-inl.h multiplies by.
#pragma once

#include "kernels/packed.h"
#include "kernels/x86/avx512/dot.h"

KVASIR_TARGET_BEGIN(KVASIR_TARGET_AMX)
namespace kvasir::kernels::amx {

using namespace avx512;  // vectors of 16 rows, and how codes are decoded

inline constexpr int kPanelTokens = kTokensPerActivationTile;  // at a time: the rows of a tile
// The panel, the dots of its blocks, 12 KB, and the sums of a pass, 24 KB, stay in the L1 cache together.
template <int kBits>
inline constexpr int kPanelBlocks = 4;
inline constexpr int kGroupsOfPanel = kGroupsPerPanel;

// A group of 4's codes of kVectors vectors of rows, signed.
template <int kBits, int kVectors>
struct PanelGroupOf4 {
  std::int8_t of[kVectors][kGroupOf4Bytes];
};

// Codes with a zero point, which kScalesCodes makes 128, as signed bytes, and back; the others are below 128
// and stay.
template <int kZeroShift>
KVASIR_FORCE_INLINE CodeLanes flip_signs(CodeLanes a) {
  if constexpr (kZeroShift == 0) return a;
  return {_mm512_xor_si512(a.v, _mm512_set1_epi8(INT8_MIN))};
}

template <int kBits, int kZeroShift>
KVASIR_FORCE_INLINE void store_panel_codes(std::int8_t* p, CodeLanes a) {
  _mm512_storeu_si512(p, flip_signs<kZeroShift>(a).v);
}

}  // namespace kvasir::kernels::amx
KVASIR_TARGET_END
