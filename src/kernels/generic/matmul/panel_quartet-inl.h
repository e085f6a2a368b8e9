// Multiplying four tokens by a panel in vector registers. Included after panel-inl.h.

struct PanelState {};

template <class Unit>
bool panel_pays(std::int32_t num_tokens) {
  return num_tokens >= kLeastTokensOfPanel;
}

template <class Unit>
void matmul_few_tokens(const MatmulArgs& args) {
  matmul<BlockTile<Unit>>(args);
}

template <class Unit, int kVectors>
KVASIR_FORCE_INLINE void add_panel_block(const PanelBlock<Unit, kVectors>& codes,
                                         const Symmetric (&scales)[kVectors], const QuartetBlock& in,
                                         FloatLanes (*sums)[kVectors]) {
  const ActivationBlock* x = in.x;
  PanelDots<kVectors> dots;
  dot_panel<0, kGroupsOf4PerBlock>(codes, in, start_panel_sum<Unit::kBits, Unit::kZeroShift>, dots);
#pragma GCC unroll 4
  for (int t = 0; t < kPanelTokens; ++t) {
    const FloatLanes scale = broadcast_lanes(x[t].scale);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      sums[t][v] = fma(to_float(dots[t][v]), mul(scales[v].scale, scale), sums[t][v]);
    }
  }
}

template <class Unit, int kVectors>
KVASIR_FORCE_INLINE void add_panel_block(const PanelBlock<Unit, kVectors>& codes,
                                         const Affine (&scales)[kVectors], const QuartetBlock& in,
                                         FloatLanes (*sums)[kVectors]) {
  const ActivationBlock* x = in.x;
  PanelDots<kVectors> dots;
  dot_panel<0, kGroupsOf4PerBlock>(codes, in, start_panel_sum<Unit::kBits, 0>, dots);
#pragma GCC unroll 4
  for (int t = 0; t < kPanelTokens; ++t) {
    const FloatLanes scale = broadcast_lanes(x[t].scale), scaled_sum = broadcast_lanes(x[t].scaled_sum);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      sums[t][v] = fma(to_float(dots[t][v]), mul(scales[v].scale, scale), sums[t][v]);
      sums[t][v] = fma(scales[v].min, scaled_sum, sums[t][v]);
    }
  }
}

// Scales has `low` and `high`.
template <class Unit, int kVectors, class Scales>
KVASIR_FORCE_INLINE void add_panel_halves(const PanelBlock<Unit, kVectors>& codes,
                                          const Scales (&scales)[kVectors], const QuartetBlock& in,
                                          FloatLanes (*sums)[kVectors]) {
  constexpr int kHalf = kGroupsOf4PerBlock / 2;
  const ActivationBlock* x = in.x;
  PanelDots<kVectors> low;
  dot_panel<0, kHalf>(codes, in, start_low_panel_sum<Unit::kBits, Unit::kZeroShift>, low);
#pragma GCC unroll 4
  for (int t = 0; t < kPanelTokens; ++t) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      sums[t][v] = fma(to_float(low[t][v]), mul(scales[v].low, broadcast_lanes(x[t].scale)), sums[t][v]);
    }
  }
  PanelDots<kVectors> high;
  dot_panel<kHalf, kGroupsOf4PerBlock>(codes, in, start_high_panel_sum<Unit::kBits, Unit::kZeroShift>, high);
#pragma GCC unroll 4
  for (int t = 0; t < kPanelTokens; ++t) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      sums[t][v] = fma(to_float(high[t][v]), mul(scales[v].high, broadcast_lanes(x[t].scale)), sums[t][v]);
    }
  }
}

template <class Unit, int kVectors>
KVASIR_FORCE_INLINE void add_panel_block(const PanelBlock<Unit, kVectors>& codes,
                                         const SymmetricHalves (&scales)[kVectors], const QuartetBlock& in,
                                         FloatLanes (*sums)[kVectors]) {
  add_panel_halves<Unit, kVectors>(codes, scales, in, sums);
}

template <class Unit, int kVectors>
KVASIR_FORCE_INLINE void add_panel_block(const PanelBlock<Unit, kVectors>& codes,
                                         const AffineHalves (&scales)[kVectors], const QuartetBlock& in,
                                         FloatLanes (*sums)[kVectors]) {
  add_panel_halves<Unit, kVectors>(codes, scales, in, sums);
#pragma GCC unroll 4
  for (int t = 0; t < kPanelTokens; ++t) {
    const HalfOffsets offsets = scaled_offsets(in.x[t]);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      sums[t][v] = fma(scales[v].low_min_of_128, broadcast_lanes(offsets.low), sums[t][v]);
      sums[t][v] = fma(scales[v].high_min_of_128, broadcast_lanes(offsets.high), sums[t][v]);
    }
  }
}

// The flags of four tokens, read as one integer.
typedef std::uint32_t __attribute__((may_alias)) QuartetFlags;

KVASIR_FORCE_INLINE QuartetBlock quartet_block(const PanelColumns& in, std::int64_t b) {
  const std::int64_t at = b * in.tile.width + in.column;
  const std::uint8_t* flags = in.tile.outlier_groups + b * kTokensPerActivationTile + in.column;
  unsigned groups_of_4 = *reinterpret_cast<const QuartetFlags*>(flags);
  groups_of_4 |= groups_of_4 >> 16;
  groups_of_4 |= groups_of_4 >> 8;
  return {in.tile.blocks + at, in.tile.outliers + at, groups_of_4 & 0xff};
}

// Adds the panel's blocks [begin, end) to the sums of four tokens, which partial holds between panels.
template <class Unit, int kVectors>
void add_panel(const Panel<Unit, kVectors>& panel, std::int64_t begin, std::int64_t end,
               const PanelColumns& in, PanelSums<kVectors>& partial) {
  PanelSums<kVectors> sums;
#pragma GCC unroll 4
  for (int t = 0; t < kPanelTokens; ++t) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sums.of[t][v] = begin == 0 ? zero_lanes() : partial.of[t][v];
  }
  for (std::int64_t b = begin; b < end; ++b) {
    add_panel_block<Unit, kVectors>(panel.codes[b - begin], panel.scales[b - begin], quartet_block(in, b),
                                    sums.of);
  }
#pragma GCC unroll 4
  for (int t = 0; t < kPanelTokens; ++t) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) partial.of[t][v] = sums.of[t][v];
  }
}
