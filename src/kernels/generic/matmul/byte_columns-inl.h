// Matmul of byte_columns.h. Included inside an ISA's namespace and target region, after tiles-inl.h.

// The sums [kTokens] of a group's rows from `lane` on.
template <int kTokens>
KVASIR_FORCE_INLINE void byte_sums(const ByteColumns& group, std::int64_t k, int lane, const float* const* rows,
                                   FloatLanes* sums) {
  FloatLanes chains[kByteChains][kTokens];
#pragma GCC unroll 4
  for (int c = 0; c < kByteChains; ++c) {
#pragma GCC unroll 8
    for (int t = 0; t < kTokens; ++t) chains[c][t] = zero_lanes();
  }
  const auto add_input = [&](std::int64_t i, int c) {
    const FloatLanes codes = load_int_lanes(group.codes + i * kRowsPerGroup + lane);
#pragma GCC unroll 8
    for (int t = 0; t < kTokens; ++t) chains[c][t] = fma(codes, broadcast_lanes(rows[t][i]), chains[c][t]);
  };
  std::int64_t i = 0;
  for (; i + kByteChains <= k; i += kByteChains) {
    prefetch_ahead<kByteChains * kRowsPerGroup>(reinterpret_cast<const char*>(group.codes + i * kRowsPerGroup));
#pragma GCC unroll 4
    for (int c = 0; c < kByteChains; ++c) add_input(i + c, c);
  }
  for (int c = 0; i + c < k; ++c) add_input(i + c, c);
  const FloatLanes scales = load_lanes(group.scales + lane);
#pragma GCC unroll 8
  for (int t = 0; t < kTokens; ++t) {
    sums[t] = mul(add(add(chains[0][t], chains[1][t]), add(chains[2][t], chains[3][t])), scales);
  }
}

struct ByteColumnTile {
  static constexpr int kMaxGroups = 1;
  static constexpr int kMaxTokens = kLanes == kRowsPerGroup ? 4 : 2;  // 16 sums, and 8 where there are 16 registers

  template <int kGroups, int kTokens>
  static void run(const MatmulArgs& args, std::int64_t group, std::int32_t first_token, int num_tokens) {
    const float* rows[kTokens];
    for (int t = 0; t < kTokens; ++t) rows[t] = args.x + token_of_row(t, first_token, num_tokens) * args.k;
    const TileOutput output = tile_output(args, group, first_token, num_tokens);
    for (int lane = 0; lane < output.num_rows; lane += kLanes) {
      FloatLanes sums[kTokens];
      byte_sums<kTokens>(byte_columns(args, group), args.k, lane, rows, sums);
      store_tile<kTokens>(output, lane, sums);
    }
  }
};

void byte_column_matmul(const MatmulArgs& args) { matmul<ByteColumnTile>(args); }
