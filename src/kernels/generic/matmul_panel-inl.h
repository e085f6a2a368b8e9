// Matmul of many tokens: a run of blocks of three groups of rows is decoded once into a panel of bytes, 24 KB
// that the L1 cache holds, and all tokens are multiplied by it, four at a time. Included after
// matmul_blocks-inl.h.
//
// Compared with a tile, which decodes for 16 tokens, each broadcast of four activations serves three
// instructions: a tile is bound by its loads. Below kLeastPanelTokens decoding takes longer than that saves.
// The operations on a sum and their order are the tile's, so the results are equal.

inline constexpr int kPanelTokens = 4;  // 12 integer and 12 float sums, 3 codes and a broadcast in registers
inline constexpr int kPanelBlocks = 16;

template <class Unit>
using ScalesOf = decltype(load_scales(std::declval<const Unit&>(), 0, 0));

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

// Adds quads [kBegin, kEnd) of a block.
template <int kBegin, int kEnd, int kGroups, int kTokens>
KVASIR_FORCE_INLINE void dot_panel(const std::uint8_t (&codes)[kPackedQuads][kGroups][kPackedQuadBytes],
                                   const ActivationBlock* x, IntLanes (&dots)[kTokens][kGroups]) {
#pragma GCC unroll 8
  for (int j = kBegin; j < kEnd; ++j) {
    CodeLanes quads[kGroups];
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) quads[g] = load_codes(codes[j][g]);
#pragma GCC unroll 4
    for (int t = 0; t < kTokens; ++t) {
      const QuadLanes q = broadcast_quad(x[t].q + 4 * j);
#pragma GCC unroll 4
      for (int g = 0; g < kGroups; ++g) dots[t][g] = add_quad(dots[t][g], quads[g], q);
    }
  }
}

template <int kGroups>
KVASIR_FORCE_INLINE void start_groups(IntLanes start, IntLanes (&dots)[kGroups]) {
#pragma GCC unroll 4
  for (int g = 0; g < kGroups; ++g) dots[g] = start;
}

template <class Unit, int kGroups, int kTokens>
KVASIR_FORCE_INLINE void add_panel_block(const std::uint8_t (&codes)[kPackedQuads][kGroups][kPackedQuadBytes],
                                         const Symmetric (&scales)[kGroups], const ActivationBlock* x,
                                         FloatLanes (*sums)[kGroups]) {
  IntLanes dots[kTokens][kGroups];
#pragma GCC unroll 4
  for (int t = 0; t < kTokens; ++t) start_groups(start_sum<Unit::kZeroShift>(x[t]), dots[t]);
  dot_panel<0, kPackedQuads>(codes, x, dots);
#pragma GCC unroll 4
  for (int t = 0; t < kTokens; ++t) {
    const FloatLanes scale = broadcast_lanes(x[t].scale);
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) {
      sums[t][g] = fma(to_float(dots[t][g]), mul(scales[g].scale, scale), sums[t][g]);
    }
  }
}

template <class Unit, int kGroups, int kTokens>
KVASIR_FORCE_INLINE void add_panel_block(const std::uint8_t (&codes)[kPackedQuads][kGroups][kPackedQuadBytes],
                                         const Affine (&scales)[kGroups], const ActivationBlock* x,
                                         FloatLanes (*sums)[kGroups]) {
  IntLanes dots[kTokens][kGroups];
#pragma GCC unroll 4
  for (int t = 0; t < kTokens; ++t) start_groups(start_sum<0>(x[t]), dots[t]);
  dot_panel<0, kPackedQuads>(codes, x, dots);
#pragma GCC unroll 4
  for (int t = 0; t < kTokens; ++t) {
    const FloatLanes scale = broadcast_lanes(x[t].scale), scaled_sum = broadcast_lanes(x[t].scaled_sum);
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) {
      sums[t][g] = fma(to_float(dots[t][g]), mul(scales[g].scale, scale), sums[t][g]);
      sums[t][g] = fma(scales[g].min, scaled_sum, sums[t][g]);
    }
  }
}

template <class Unit, int kGroups, int kTokens>
KVASIR_FORCE_INLINE void add_panel_block(const std::uint8_t (&codes)[kPackedQuads][kGroups][kPackedQuadBytes],
                                         const SymmetricHalves (&scales)[kGroups], const ActivationBlock* x,
                                         FloatLanes (*sums)[kGroups]) {
  IntLanes low[kTokens][kGroups];
#pragma GCC unroll 4
  for (int t = 0; t < kTokens; ++t) start_groups(start_low_sum(x[t]), low[t]);
  dot_panel<0, kPackedQuads / 2>(codes, x, low);
#pragma GCC unroll 4
  for (int t = 0; t < kTokens; ++t) {
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) {
      sums[t][g] = fma(to_float(low[t][g]), mul(scales[g].low, broadcast_lanes(x[t].scale)), sums[t][g]);
    }
  }
  IntLanes high[kTokens][kGroups];
#pragma GCC unroll 4
  for (int t = 0; t < kTokens; ++t) start_groups(start_high_sum(x[t]), high[t]);
  dot_panel<kPackedQuads / 2, kPackedQuads>(codes, x, high);
#pragma GCC unroll 4
  for (int t = 0; t < kTokens; ++t) {
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

// Four tokens from `column` of a tile.
struct Quartet {
  const ConstActivationTile& tile;
  int column;

  const ActivationBlock* blocks(std::int64_t b) const { return tile.blocks + b * tile.width + column; }
  const ActivationBlock* residuals(std::int64_t b) const { return tile.residuals + b * tile.width + column; }
  const std::uint8_t* outliers(std::int64_t b) const {
    return tile.outliers + b * kTokensPerActivationTile + column;
  }
};

// What a panel multiplies, in order: its blocks, and after a block its residuals when one of the four tokens
// has an outlier there. The others' residuals are zeros, which change no bit of their sums.
struct PanelSteps {
  struct Step {
    const ActivationBlock* x;
    std::int64_t block;  // of the panel
  };
  Step steps[2 * kPanelBlocks];
  int size = 0;

  PanelSteps(const Quartet& in, std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = begin; b < end; ++b) {
      steps[size++] = {in.blocks(b), b - begin};
      steps[size] = {in.residuals(b), b - begin};
      size += *reinterpret_cast<const ActivationQuad*>(in.outliers(b)) != 0 ? 1 : 0;
    }
  }
};

// Adds the panel's blocks [begin, end) to the sums of four tokens, which partial holds between panels.
template <class Unit, int kGroups>
void add_panel(const Panel<Unit, kGroups>& panel, std::int64_t begin, std::int64_t end, const Quartet& in,
               PanelSums<kGroups>& partial) {
  const PanelSteps steps(in, begin, end);
  PanelSums<kGroups> sums;
#pragma GCC unroll 4
  for (int t = 0; t < kPanelTokens; ++t) {
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) sums.of[t][g] = begin == 0 ? zero_lanes() : partial.of[t][g];
  }
  for (int i = 0; i < steps.size; ++i) {
    const auto& [x, block] = steps.steps[i];
    add_panel_block<Unit, kGroups, kPanelTokens>(panel.codes[block], panel.scales[block], x, sums.of);
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
