// Matmul of many tokens: a run of blocks of three groups of rows is decoded once into a panel of bytes, 24 KB
// that the L1 cache holds, and all tokens are multiplied by it, four at a time. Included after
// matmul_blocks-inl.h.
//
// Compared with a tile, which decodes for 16 tokens, each broadcast of four activations serves three
// instructions: a tile is bound by its loads. Below kLeastPanelTokens decoding takes longer than that saves.
// The operations on a sum and their order are the tile's, so the results are equal.

inline constexpr int kPanelTokens = 4;  // 12 integer and 12 float sums, 3 codes and a broadcast in registers
inline constexpr int kPanelBlocks = 16;

template <class Unit, int kGroups>
struct Panel {
  alignas(64) std::uint8_t codes[kPanelBlocks][kPackedQuads][kGroups][kPackedQuadBytes];
  ScalesOf<Unit> scales[kPanelBlocks][kGroups];
};

// Blocks [begin, end) of kGroups groups.
template <class Unit, int kGroups, class Units>
void fill_panel(const Units& units, std::int64_t units_per_group, std::int64_t begin, std::int64_t end,
                Panel<Unit, kGroups>& panel) {
  for (int g = 0; g < kGroups; ++g) {
    for (std::int64_t b = begin; b < end; ++b) {
      const Unit& unit = units[g * units_per_group + b / Unit::kBlocks];
      const int block = static_cast<int>(b % Unit::kBlocks);
      prefetch_block(unit, block);
      CodeLanes codes[kPackedQuads];
      decode(unit, block, 0, codes);
#pragma GCC unroll 8
      for (int j = 0; j < kPackedQuads; ++j) store_codes(panel.codes[b - begin][j][g], codes[j]);
      panel.scales[b - begin][g] = load_scales(unit, block, 0);
    }
  }
}

template <int kGroups>
using PanelCodes = std::uint8_t[kPackedQuads][kGroups][kPackedQuadBytes];

// A block of four tokens.
struct QuartetBlock {
  const ActivationBlock* x;
  const CoarseCodes* coarse;
  unsigned coarse_quads;  // those that any of the tokens has; the others' zeros change no bit of their sums
};

// Adds quad j, of which a token's activations are at q + t * kStride.
template <int kStride, int kGroups>
KVASIR_FORCE_INLINE void add_panel_quad(const std::uint8_t (&codes)[kGroups][kPackedQuadBytes],
                                        const std::int8_t* q, IntLanes (&dots)[kPanelTokens][kGroups]) {
  CodeLanes quads[kGroups];
#pragma GCC unroll 4
  for (int g = 0; g < kGroups; ++g) quads[g] = load_codes(codes[g]);
#pragma GCC unroll 4
  for (int t = 0; t < kPanelTokens; ++t) {
    const QuadLanes quad = broadcast_quad(q + t * kStride);
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) dots[t][g] = add_quad(dots[t][g], quads[g], quad);
  }
}

// The dots of quads [kBegin, kEnd) of a block, the coarse codes first. `start_of` says where a token's start.
template <int kBegin, int kEnd, int kGroups, class StartOf>
KVASIR_FORCE_INLINE void dot_panel(const PanelCodes<kGroups>& codes, const QuartetBlock& in,
                                   const StartOf& start_of, IntLanes (&dots)[kPanelTokens][kGroups]) {
  unsigned coarse_quads = in.coarse_quads & ((1u << kEnd) - (1u << kBegin));
  if (coarse_quads == 0) {
#pragma GCC unroll 4
    for (int t = 0; t < kPanelTokens; ++t) {
#pragma GCC unroll 4
      for (int g = 0; g < kGroups; ++g) dots[t][g] = start_of(in.x[t]);
    }
  } else {
#pragma GCC unroll 4
    for (int t = 0; t < kPanelTokens; ++t) {
#pragma GCC unroll 4
      for (int g = 0; g < kGroups; ++g) dots[t][g] = zero_int_lanes();
    }
    do {
      const int j = std::countr_zero(coarse_quads);
      add_panel_quad<sizeof(CoarseCodes)>(codes[j], in.coarse->q + 4 * j, dots);
      coarse_quads &= coarse_quads - 1;
    } while (coarse_quads != 0);
#pragma GCC unroll 4
    for (int t = 0; t < kPanelTokens; ++t) {
#pragma GCC unroll 4
      for (int g = 0; g < kGroups; ++g) dots[t][g] = add_coarse(start_of(in.x[t]), dots[t][g]);
    }
  }
#pragma GCC unroll 8
  for (int j = kBegin; j < kEnd; ++j)
    add_panel_quad<sizeof(ActivationBlock)>(codes[j], in.x->q + 4 * j, dots);
}

template <class Unit, int kGroups>
KVASIR_FORCE_INLINE void add_panel_block(const PanelCodes<kGroups>& codes, const Symmetric (&scales)[kGroups],
                                         const QuartetBlock& in, FloatLanes (*sums)[kGroups]) {
  const ActivationBlock* x = in.x;
  IntLanes dots[kPanelTokens][kGroups];
  dot_panel<0, kPackedQuads>(codes, in, start_sum<Unit::kBits, Unit::kZeroShift>, dots);
#pragma GCC unroll 4
  for (int t = 0; t < kPanelTokens; ++t) {
    const FloatLanes scale = broadcast_lanes(x[t].scale);
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) {
      sums[t][g] = fma(to_float(dots[t][g]), mul(scales[g].scale, scale), sums[t][g]);
    }
  }
}

template <class Unit, int kGroups>
KVASIR_FORCE_INLINE void add_panel_block(const PanelCodes<kGroups>& codes, const Affine (&scales)[kGroups],
                                         const QuartetBlock& in, FloatLanes (*sums)[kGroups]) {
  const ActivationBlock* x = in.x;
  IntLanes dots[kPanelTokens][kGroups];
  dot_panel<0, kPackedQuads>(codes, in, start_sum<Unit::kBits, 0>, dots);
#pragma GCC unroll 4
  for (int t = 0; t < kPanelTokens; ++t) {
    const FloatLanes scale = broadcast_lanes(x[t].scale), scaled_sum = broadcast_lanes(x[t].scaled_sum);
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) {
      sums[t][g] = fma(to_float(dots[t][g]), mul(scales[g].scale, scale), sums[t][g]);
      sums[t][g] = fma(scales[g].min, scaled_sum, sums[t][g]);
    }
  }
}

template <class Unit, int kGroups>
KVASIR_FORCE_INLINE void add_panel_block(const PanelCodes<kGroups>& codes,
                                         const SymmetricHalves (&scales)[kGroups], const QuartetBlock& in,
                                         FloatLanes (*sums)[kGroups]) {
  const ActivationBlock* x = in.x;
  IntLanes low[kPanelTokens][kGroups];
  dot_panel<0, kPackedQuads / 2>(codes, in, start_low_sum<Unit::kBits, Unit::kZeroShift>, low);
#pragma GCC unroll 4
  for (int t = 0; t < kPanelTokens; ++t) {
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) {
      sums[t][g] = fma(to_float(low[t][g]), mul(scales[g].low, broadcast_lanes(x[t].scale)), sums[t][g]);
    }
  }
  IntLanes high[kPanelTokens][kGroups];
  dot_panel<kPackedQuads / 2, kPackedQuads>(codes, in, start_high_sum<Unit::kBits, Unit::kZeroShift>, high);
#pragma GCC unroll 4
  for (int t = 0; t < kPanelTokens; ++t) {
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) {
      sums[t][g] = fma(to_float(high[t][g]), mul(scales[g].high, broadcast_lanes(x[t].scale)), sums[t][g]);
    }
  }
}

// The sums of four tokens by kGroups groups while a panel does not have all of k.
template <int kGroups>
struct PanelSums {
  FloatLanes of[kPanelTokens][kGroups];
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
template <class Unit, int kGroups>
void add_panel(const Panel<Unit, kGroups>& panel, std::int64_t begin, std::int64_t end, const Quartet& in,
               PanelSums<kGroups>& partial) {
  PanelSums<kGroups> sums;
#pragma GCC unroll 4
  for (int t = 0; t < kPanelTokens; ++t) {
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) sums.of[t][g] = begin == 0 ? zero_lanes() : partial.of[t][g];
  }
  for (std::int64_t b = begin; b < end; ++b) {
    add_panel_block<Unit>(panel.codes[b - begin], panel.scales[b - begin], in.block(b), sums.of);
  }
#pragma GCC unroll 4
  for (int t = 0; t < kPanelTokens; ++t) {
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) partial.of[t][g] = sums.of[t][g];
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

template <int kGroups>
KVASIR_FORCE_INLINE void store_quartet(const MatmulArgs& args, std::int64_t group, std::int32_t first_token,
                                       int num_tokens, const PanelSums<kGroups>& sums) {
#pragma GCC unroll 4
  for (int g = 0; g < kGroups; ++g) {
    FloatLanes of_group[kPanelTokens];
#pragma GCC unroll 4
    for (int t = 0; t < kPanelTokens; ++t) of_group[t] = sums.of[t][g];
    store_tile<kPanelTokens>(tile_output(args, group + g, first_token, num_tokens), 0, of_group);
  }
}

// Tokens [begin, end), a pass.
template <class Unit, int kGroups>
void multiply_groups(const MatmulArgs& args, std::int64_t group, std::int32_t begin, std::int32_t end) {
  Panel<Unit, kGroups> panel;
  PanelSums<kGroups> sums[kPassTokens / kPanelTokens];
  const auto units = units_at<Unit>(args, group);
  const std::int64_t num_blocks = args.k / kActivationBlock;
  const std::int64_t num_panels = (num_blocks + kPanelBlocks - 1) / kPanelBlocks;
  for (std::int64_t i = 0; i < num_panels; ++i) {
    const std::int64_t first_block = num_blocks * i / num_panels;
    const std::int64_t end_block = num_blocks * (i + 1) / num_panels;
    fill_panel(units, units_of<Unit>(args.k), first_block, end_block, panel);
    PanelSums<kGroups>* partial = sums;
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
    for (; group + kGroupsPerPanel <= args.group_end; group += kGroupsPerPanel) {
      multiply_groups<Unit, kGroupsPerPanel>(args, group, pass, pass_end);
    }
    if (args.group_end - group == 2) multiply_groups<Unit, 2>(args, group, pass, pass_end);
    if (args.group_end - group == 1) multiply_groups<Unit, 1>(args, group, pass, pass_end);
  }
}

template <class Unit>
void block_matmul(const MatmulArgs& args) {
  if (args.num_tokens >= kLeastPanelTokens) {
    panel_matmul<Unit>(args);
  } else {
    matmul<BlockTile<Unit>>(args);
  }
}
