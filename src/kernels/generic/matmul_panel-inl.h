// Matmul of many tokens: a run of blocks of some groups of rows is decoded once into a panel of bytes, 8 to
// 24 KB that the L1 cache holds, and all tokens are multiplied by it, four at a time. Included after
// matmul_blocks-inl.h.
//
// Compared with a tile, which decodes for 16 tokens, each broadcast of four activations serves all vectors of
// rows: a tile is bound by its loads. Below kLeastTokensOfPanel decoding takes longer than that saves.
// The operations on a sum and their order are the tile's, so the results are equal.

inline constexpr int kVectorsPerGroup = kPackedRows / kLanes;

// Of kVectors vectors of rows: those of the first group, then those of the next.
template <class Unit, int kVectors>
struct Panel {
  alignas(64) PanelQuad<Unit::kBits, kVectors> codes[kPanelBlocks<Unit::kBits>][kPackedQuads];
  ScalesOf<Unit> scales[kPanelBlocks<Unit::kBits>][kVectors];
};

// Blocks [begin, end) of the panel's groups.
template <class Unit, int kVectors, class Units>
void fill_panel(const Units& units, std::int64_t units_per_group, std::int64_t begin, std::int64_t end,
                Panel<Unit, kVectors>& panel) {
  for (int v = 0; v < kVectors; ++v) {
    const std::int64_t first_unit = v / kVectorsPerGroup * units_per_group;
    const int lane = v % kVectorsPerGroup * kLanes;
    for (std::int64_t b = begin; b < end; ++b) {
      const Unit& unit = units[first_unit + b / Unit::kBlocks];
      const int block = static_cast<int>(b % Unit::kBlocks);
      if (lane == 0) prefetch_block(unit, block);
      CodeLanes codes[kPackedQuads];
      decode(unit, block, lane, codes);
#pragma GCC unroll 8
      for (int j = 0; j < kPackedQuads; ++j) {
        store_panel_codes<Unit::kBits>(panel.codes[b - begin][j].of[v], codes[j]);
      }
      panel.scales[b - begin][v] = load_scales(unit, block, lane);
    }
  }
}

template <class Unit, int kVectors>
using PanelBlock = PanelQuad<Unit::kBits, kVectors>[kPackedQuads];

template <class Unit, int kVectors>
KVASIR_FORCE_INLINE void add_panel_block(const PanelBlock<Unit, kVectors>& codes,
                                         const Symmetric (&scales)[kVectors], const QuartetBlock& in,
                                         FloatLanes (*sums)[kVectors]) {
  const ActivationBlock* x = in.x;
  PanelDots<kVectors> dots;
  dot_panel<0, kPackedQuads>(codes, in, start_panel_sum<Unit::kBits, Unit::kZeroShift>, dots);
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
  dot_panel<0, kPackedQuads>(codes, in, start_panel_sum<Unit::kBits, 0>, dots);
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

template <class Unit, int kVectors>
KVASIR_FORCE_INLINE void add_panel_block(const PanelBlock<Unit, kVectors>& codes,
                                         const SymmetricHalves (&scales)[kVectors], const QuartetBlock& in,
                                         FloatLanes (*sums)[kVectors]) {
  constexpr int kHalf = kPackedQuads / 2;
  const ActivationBlock* x = in.x;
  PanelDots<kVectors> low;
  dot_panel<0, kHalf>(codes, in, start_low_sum<Unit::kBits, Unit::kZeroShift>, low);
#pragma GCC unroll 4
  for (int t = 0; t < kPanelTokens; ++t) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      sums[t][v] = fma(to_float(low[t][v]), mul(scales[v].low, broadcast_lanes(x[t].scale)), sums[t][v]);
    }
  }
  PanelDots<kVectors> high;
  dot_panel<kHalf, kPackedQuads>(codes, in, start_high_sum<Unit::kBits, Unit::kZeroShift>, high);
#pragma GCC unroll 4
  for (int t = 0; t < kPanelTokens; ++t) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      sums[t][v] = fma(to_float(high[t][v]), mul(scales[v].high, broadcast_lanes(x[t].scale)), sums[t][v]);
    }
  }
}

// The sums of four tokens while a panel does not have all of k.
template <int kVectors>
struct PanelSums {
  FloatLanes of[kPanelTokens][kVectors];
};

// The flags of four tokens, read as one integer.
typedef std::uint32_t __attribute__((may_alias)) QuartetFlags;

// Four tokens from `column` of a tile.
struct Quartet {
  const ConstActivationTile& tile;
  int column;

  QuartetBlock block(std::int64_t b) const {
    const std::int64_t at = b * tile.width + column;
    const std::uint8_t* flags = tile.coarse_quads + b * kTokensPerActivationTile + column;
    unsigned quads = *reinterpret_cast<const QuartetFlags*>(flags);
    quads |= quads >> 16;
    quads |= quads >> 8;
    return {tile.blocks + at, tile.coarse + at, quads & 0xff};
  }
};

// Adds the panel's blocks [begin, end) to the sums of four tokens, which partial holds between panels.
template <class Unit, int kVectors>
void add_panel(const Panel<Unit, kVectors>& panel, std::int64_t begin, std::int64_t end, const Quartet& in,
               PanelSums<kVectors>& partial) {
  PanelSums<kVectors> sums;
#pragma GCC unroll 4
  for (int t = 0; t < kPanelTokens; ++t) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sums.of[t][v] = begin == 0 ? zero_lanes() : partial.of[t][v];
  }
  for (std::int64_t b = begin; b < end; ++b) {
    add_panel_block<Unit, kVectors>(panel.codes[b - begin], panel.scales[b - begin], in.block(b), sums.of);
  }
#pragma GCC unroll 4
  for (int t = 0; t < kPanelTokens; ++t) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) partial.of[t][v] = sums.of[t][v];
  }
}

// Asks for where four tokens' outputs will go: they lie far apart, and nothing else announces them.
template <int kGroups>
KVASIR_FORCE_INLINE void prefetch_quartet(const MatmulArgs& args, std::int64_t group,
                                          std::int32_t first_token, int num_tokens) {
  for (int t = 0; t < kPanelTokens && t < num_tokens; ++t) {
    const float* out = args.out + (first_token + t) * args.out_stride + group * kRowsPerGroup;
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) __builtin_prefetch(out + g * kRowsPerGroup, 1);
  }
}

template <int kVectors>
KVASIR_FORCE_INLINE void store_quartet(const MatmulArgs& args, std::int64_t group, std::int32_t first_token,
                                       int num_tokens, const PanelSums<kVectors>& sums) {
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    FloatLanes of_rows[kPanelTokens];
#pragma GCC unroll 4
    for (int t = 0; t < kPanelTokens; ++t) of_rows[t] = sums.of[t][v];
    const TileOutput output = tile_output(args, group + v / kVectorsPerGroup, first_token, num_tokens);
    const int lane = v % kVectorsPerGroup * kLanes;
    if (output.num_rows > lane) store_tile<kPanelTokens>(output, lane, of_rows);
  }
}

// Tokens [begin, end), a pass.
template <class Unit, int kGroups>
void multiply_groups(const MatmulArgs& args, std::int64_t group, std::int32_t begin, std::int32_t end) {
  constexpr int kVectors = kGroups * kVectorsPerGroup;
  Panel<Unit, kVectors> panel;
  PanelSums<kVectors> sums[kPassTokens / kPanelTokens];
  const auto units = units_at<Unit>(args, group);
  const std::int64_t num_blocks = args.k / kActivationBlock;
  const std::int64_t num_panels = (num_blocks + kPanelBlocks<Unit::kBits> - 1) / kPanelBlocks<Unit::kBits>;
  for (std::int64_t i = 0; i < num_panels; ++i) {
    const std::int64_t first_block = num_blocks * i / num_panels;
    const std::int64_t end_block = num_blocks * (i + 1) / num_panels;
    fill_panel(units, units_of<Unit>(args.k), first_block, end_block, panel);
    PanelSums<kVectors>* partial = sums;
    for (std::int32_t first = begin; first < end; first += kTokensPerActivationTile) {
      const ConstActivationTile tile = activation_tile(args.quantized, args.k, first, args.num_tokens);
      for (int column = 0; column < tile.width; column += kPanelTokens, ++partial) {
        const bool is_last = end_block == num_blocks;
        const int num_tokens = static_cast<int>(tile.width) - column;
        if (is_last) prefetch_quartet<kGroups>(args, group, first + column, num_tokens);
        add_panel(panel, first_block, end_block, {tile, column}, *partial);
        if (is_last) store_quartet(args, group, first + column, num_tokens, *partial);
      }
    }
  }
}

template <class Unit>
void panel_matmul(const MatmulArgs& args) {
  for (std::int32_t pass = 0; pass < args.num_tokens; pass += kPassTokens) {
    const auto pass_end = static_cast<std::int32_t>(smaller(pass + kPassTokens, args.num_tokens));
    std::int64_t group = args.group_begin;
    for (; group + kGroupsOfPanel <= args.group_end; group += kGroupsOfPanel) {
      multiply_groups<Unit, kGroupsOfPanel>(args, group, pass, pass_end);
    }
    if constexpr (kGroupsOfPanel > 1) {
      if (args.group_end - group == 2) multiply_groups<Unit, 2>(args, group, pass, pass_end);
      if (args.group_end - group == 1) multiply_groups<Unit, 1>(args, group, pass, pass_end);
    }
  }
}

template <class Unit>
void block_matmul(const MatmulArgs& args) {
  if (args.num_tokens >= kLeastTokensOfPanel) {
    panel_matmul<Unit>(args);
  } else {
    matmul<BlockTile<Unit>>(args);
  }
}
