// Multiplying 16 tokens by a panel with AMX. Included after generic/matmul/panel-inl.h.
//
// A tile of activations is 16 tokens by a block's 32 inputs, one of weights the block's groups of 4 of 16
// rows, and their product 16 by 16 integer dots: 8192 products in 16 cycles, four times what vpdpbusd does.
// The dots have to leave through memory, because each block has scales of its own. Tile instructions and
// vectors of 512 bits disturb each other (a core then multiplies half as many of the latter,
// docs/PERFORMANCE.md), so the dots of a whole panel come first and meet their scales afterwards.

// The first tile of the products, then those of the activations and of the weights.
inline constexpr int kDotsTile = 0, kInputsTile = 3, kWeightsTile = 4;

constexpr TileConfig tile_config() {
  TileConfig config;
  config.shape(kInputsTile, kPanelTokens, kActivationBlock);
  for (int v = 0; v < kGroupsOfPanel; ++v) {
    config.shape(kDotsTile + v, kPanelTokens, 4 * kLanes);
    config.shape(kWeightsTile + v, kGroupsOf4PerBlock, kGroupOf4Bytes);
  }
  return config;
}

// Gives the tiles their shapes while it lives.
class PanelState {
 public:
  PanelState() { shape_tiles(kConfig); }
  ~PanelState() { release_tiles(); }
  PanelState(const PanelState&) = delete;
  PanelState& operator=(const PanelState&) = delete;

 private:
  static constexpr TileConfig kConfig = tile_config();
};

// The dots of a panel's blocks and one vector of rows, as add_dots reads them.
template <class Unit>
struct PanelDots {
  static_assert(kSums<Unit> == 1);
  alignas(64) IntLanes of[kPanelBlocks<Unit::kBits>][1][kPanelTokens];
};

// The codes' dots of block b of the panel with the activations at x.
template <class Unit, int kVectors>
KVASIR_FORCE_INLINE void multiply_block(const PanelBlock<Unit, kVectors>& codes, const ActivationBlock* x,
                                        int b, PanelDots<Unit> (&dots)[kVectors]) {
  constexpr std::int64_t kGroupOf4Stride = sizeof(codes[0]);
  load_tile<kInputsTile>(x->q, sizeof(ActivationBlock));
  load_tile<kWeightsTile>(codes[0].of[0], kGroupOf4Stride);
  multiply_tiles<kDotsTile, kInputsTile, kWeightsTile>();
  if constexpr (kVectors > 1) {
    load_tile<kWeightsTile + 1>(codes[0].of[1], kGroupOf4Stride);
    multiply_tiles<kDotsTile + 1, kInputsTile, kWeightsTile + 1>();
  }
  if constexpr (kVectors > 2) {
    load_tile<kWeightsTile + 2>(codes[0].of[2], kGroupOf4Stride);
    multiply_tiles<kDotsTile + 2, kInputsTile, kWeightsTile + 2>();
  }
  store_tile<kDotsTile>(dots[0].of[b], sizeof(IntLanes));
  if constexpr (kVectors > 1) store_tile<kDotsTile + 1>(dots[1].of[b], sizeof(IntLanes));
  if constexpr (kVectors > 2) store_tile<kDotsTile + 2>(dots[2].of[b], sizeof(IntLanes));
}

// The dot of a group of 4 of signed codes.
template <int kZeroShift>
KVASIR_FORCE_INLINE IntLanes dot_signed_group_of_4(const std::int8_t* codes, GroupOf4Lanes group_of_4) {
  const CodeLanes is_signed = {_mm512_load_si512(codes)};
  const IntLanes dot = add_group_of_4(zero_int_lanes(), flip_signs<kZeroShift>(is_signed), group_of_4);
  if constexpr (kZeroShift == 0) return dot;
  const CodeLanes zeros = {_mm512_set1_epi8(INT8_MIN)};
  return {_mm512_sub_epi32(dot.v, add_group_of_4(zero_int_lanes(), zeros, group_of_4).v)};
}

// A bit for each token of each of a panel's blocks that has outlier codes there. The flags are as of `tile`,
// from block `begin`.
template <int kBlocks>
KVASIR_FORCE_INLINE std::uint64_t find_outlier_tokens(const ConstActivationTile& tile, std::int64_t begin,
                                                      int num_blocks) {
  static_assert(kBlocks * kTokensPerActivationTile == 64);
  const __m512i flags = _mm512_loadu_si512(tile.outlier_groups + begin * kTokensPerActivationTile);
  const int unused_bits = (kBlocks - num_blocks) * kTokensPerActivationTile;
  return _mm512_mask_test_epi8_mask(~std::uint64_t{0} >> unused_bits, flags, flags);
}

// Adds the products of the outlier codes that `tokens` have. They are few: a token's groups of 4 one by one.
template <class Unit, int kVectors>
KVASIR_FORCE_INLINE void add_outlier_dots(const Panel<Unit, kVectors>& panel, const ConstActivationTile& tile,
                                          std::int64_t begin, std::uint64_t tokens,
                                          PanelDots<Unit> (&dots)[kVectors]) {
  for (; tokens != 0; tokens &= tokens - 1) {
    const int i = std::countr_zero(tokens);
    const int b = i / kTokensPerActivationTile, t = i % kTokensPerActivationTile;
    const std::int8_t* outliers = tile.outliers[(begin + b) * tile.width + t].q;
    unsigned groups_of_4 = tile.outlier_groups[begin * kTokensPerActivationTile + i];
    do {
      const int j = std::countr_zero(groups_of_4);
      const GroupOf4Lanes group_of_4 = broadcast_group_of_4(outliers + 4 * j);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        IntLanes& dot = dots[v].of[b][0][t];
        dot = add_outliers(dot, dot_signed_group_of_4<Unit::kZeroShift>(panel.codes[b][j].of[v], group_of_4));
      }
      groups_of_4 &= groups_of_4 - 1;
    } while (groups_of_4 != 0);
  }
}

// Adds the dots of num_blocks blocks, whose activations are at x, to kTokens tokens' sums of vector v.
template <class Unit, int kTokens, int kVectors>
KVASIR_FORCE_INLINE void add_panel_dots(const Panel<Unit, kVectors>& panel, const PanelDots<Unit>& dots,
                                        const ActivationBlock* x, std::int64_t width, int num_blocks, int v,
                                        bool is_first, PanelSums<kVectors>& partial) {
  FloatLanes sums[kTokens];
#pragma GCC unroll 16
  for (int t = 0; t < kTokens; ++t) sums[t] = is_first ? zero_lanes() : partial.of[t][v];
  for (int b = 0; b < num_blocks; ++b, x += width) {
    const IntLanes(&of_block)[1][kPanelTokens] = dots.of[b];
    add_dots<kTokens>(reinterpret_cast<const IntLanes(*)[kTokens]>(of_block), panel.scales[b][v], x, sums);
  }
#pragma GCC unroll 16
  for (int t = 0; t < kTokens; ++t) partial.of[t][v] = sums[t];
}

// Adds the panel's blocks [begin, end) to the sums of a tile of tokens, which partial holds between panels.
template <class Unit, int kVectors>
void add_panel(const Panel<Unit, kVectors>& panel, std::int64_t begin, std::int64_t end,
               const PanelColumns& in, PanelSums<kVectors>& partial) {
  PanelDots<Unit> dots[kVectors];
  const std::int64_t width = in.tile.width;
  const ActivationBlock* const first = in.tile.blocks + begin * width;
  const auto num_blocks = static_cast<int>(end - begin);
  // Known early, so that a wrong guess at how many there are costs little.
  const std::uint64_t outlier_tokens = find_outlier_tokens<kPanelBlocks<Unit::kBits>>(in.tile, begin,
                                                                                      num_blocks);
  for (int b = 0; b < num_blocks; ++b) {
    multiply_block<Unit, kVectors>(panel.codes[b], first + b * width, b, dots);
  }
  add_outlier_dots<Unit, kVectors>(panel, in.tile, begin, outlier_tokens, dots);
  constexpr int kHalf = kPanelTokens / 2;
  for (int v = 0; v < kVectors; ++v) {
    if (width > kHalf) {
      add_panel_dots<Unit, kPanelTokens>(panel, dots[v], first, width, num_blocks, v, begin == 0, partial);
    } else {
      add_panel_dots<Unit, kHalf>(panel, dots[v], first, width, num_blocks, v, begin == 0, partial);
    }
  }
}

// A tile costs what it does however few tokens it has, and fewer than a tile are AVX-512's.
template <class Unit>
bool panel_pays(std::int32_t num_tokens) {
  constexpr int kLeastTokens = Unit::kBits == 8 ? 2 * kPanelTokens : kPanelTokens;
  const std::int32_t num_tiles = (num_tokens + kPanelTokens - 1) / kPanelTokens;
  return num_tokens >= kLeastTokens && 4 * num_tokens >= 3 * kPanelTokens * num_tiles;
}

template <class Unit>
void matmul_few_tokens(const MatmulArgs& args) {
  if constexpr (std::is_same_v<Unit, NibblePlaneUnit>) {
    avx512::nibble_plane_matmul(args);
  } else {
    avx512::matmul_of(Unit::kDType)(args);
  }
}
