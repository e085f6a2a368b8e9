// Matmul of many tokens by panels. Included after panel-inl.h and what multiplies by a panel:
// panel_quartet-inl.h, or an ISA's own, with
//   PanelState, which lives while panels are multiplied by,
//   add_panel, which adds a panel's blocks [begin, end) to the sums of kPanelTokens tokens,
//   panel_pays, whether decoding into a panel saves more than it takes, and
//   matmul_few_tokens, for where it does not.

// Asks for where the outputs of a panel's tokens will go: they lie far apart, and nothing else announces
// them.
template <int kGroups>
KVASIR_FORCE_INLINE void prefetch_outputs(const MatmulArgs& args, std::int64_t group,
                                          std::int32_t first_token, int num_tokens) {
  for (int t = 0; t < kPanelTokens && t < num_tokens; ++t) {
    const float* out = args.out + (first_token + t) * args.out_stride + group * kRowsPerGroup;
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) __builtin_prefetch(out + g * kRowsPerGroup, 1);
  }
}

template <int kVectors>
KVASIR_FORCE_INLINE void store_sums(const MatmulArgs& args, std::int64_t group, std::int32_t first_token,
                                    int num_tokens, const PanelSums<kVectors>& sums) {
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    FloatLanes of_rows[kPanelTokens];
#pragma GCC unroll 16
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
  const std::int64_t num_parts = (end - begin + kPanelTokens - 1) / kPanelTokens;
  for (std::int64_t i = 0; i < num_panels; ++i) {
    const std::int64_t first_block = num_blocks * i / num_panels;
    const std::int64_t end_block = num_blocks * (i + 1) / num_panels;
    const bool is_last = end_block == num_blocks;
    const PanelWeights<Unit, kGroups> next = {
        .units = units_at<Unit>(args, is_last ? group + kGroups : group),
        .units_per_group = units_of<Unit>(args.k),
        .begin_block = is_last ? 0 : end_block,
        .end_block = is_last ? num_blocks / num_panels : num_blocks * (i + 2) / num_panels};
    fill_panel(units, units_of<Unit>(args.k), first_block, end_block, panel);
    PanelSums<kVectors>* partial = sums;
    for (std::int32_t first = begin; first < end; first += kTokensPerActivationTile) {
      const ConstActivationTile tile = activation_tile(args.quantized, args.k, first, args.num_tokens);
      for (int column = 0; column < tile.width; column += kPanelTokens, ++partial) {
        const int num_tokens = static_cast<int>(tile.width) - column;
        next.prefetch(partial - sums, num_parts);
        if (is_last) prefetch_outputs<kGroups>(args, group, first + column, num_tokens);
        add_panel(panel, first_block, end_block, {tile, column}, *partial);
        if (is_last) store_sums(args, group, first + column, num_tokens, *partial);
      }
    }
  }
}

template <class Unit>
void panel_matmul(const MatmulArgs& args) {
  [[maybe_unused]] const PanelState state;
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
  if (panel_pays<Unit>(args.num_tokens)) {
    panel_matmul<Unit>(args);
  } else {
    matmul_few_tokens<Unit>(args);
  }
}
