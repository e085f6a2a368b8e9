// Matmul of F32, F16 and BF16 weights against float activations. Included inside an ISA's namespace and target
// region, after matmul_tile-inl.h.
//
// The sum of one output is one fused multiply-add per input, in order: see ref/matmul.cc, whose bits this gives.

KVASIR_FORCE_INLINE FloatLanes load_column(const PackedF32& column, int lane) {
  return load_lanes(column.rows + lane);
}
KVASIR_FORCE_INLINE FloatLanes load_column(const PackedF16& column, int lane) {
  return load_half_lanes(column.rows + lane);
}
KVASIR_FORCE_INLINE FloatLanes load_column(const PackedBF16& column, int lane) {
  return load_bf16_lanes(column.rows + lane);
}

// Adds inputs [begin, begin + kInputs) to the sums.
template <class Column, int kInputs, int kTokens>
KVASIR_FORCE_INLINE void add_columns(const Column* columns, std::int64_t begin, int lane, const float* const* rows,
                                     FloatLanes* sums) {
#pragma GCC unroll 4
  for (std::int64_t i = begin; i < begin + kInputs; ++i) {
    const FloatLanes weights = load_column(columns[i], lane);
#pragma GCC unroll 16
    for (int t = 0; t < kTokens; ++t) sums[t] = fma(weights, broadcast_lanes(rows[t][i]), sums[t]);
  }
}

template <class Column, int kTokens>
void column_tile(const Column* columns, std::int64_t k, const float* const* rows, const TileOutput& output) {
  constexpr int kInputs = 4;
  for (int lane = 0; lane < output.num_rows; lane += kLanes) {
    FloatLanes sums[kTokens];
#pragma GCC unroll 16
    for (int t = 0; t < kTokens; ++t) sums[t] = zero_lanes();
    std::int64_t i = 0;
    for (; i + kInputs <= k; i += kInputs) {
      prefetch_ahead<kInputs * sizeof(Column)>(reinterpret_cast<const char*>(columns + i));
      add_columns<Column, kInputs, kTokens>(columns, i, lane, rows, sums);
    }
    for (; i < k; ++i) add_columns<Column, 1, kTokens>(columns, i, lane, rows, sums);
    store_tile<kTokens>(output, lane, sums);
  }
}

// Runs one group for `num_tokens` <= kTokens tokens from `first_token`.
template <class Column>
struct ColumnTile {
  template <int kTokens>
  static void run(const MatmulArgs& args, std::int64_t group, std::int32_t first_token, int num_tokens) {
    const float* rows[kTokens];
    for (int t = 0; t < kTokens; ++t) rows[t] = args.x + token_of_row(t, first_token, num_tokens) * args.k;
    const std::int64_t group_bytes = column_group_bytes<Column>(args.k);
    const auto* columns =
        reinterpret_cast<const Column*>(static_cast<const char*>(args.weights) + group * group_bytes);
    column_tile<Column, kTokens>(columns, args.k, rows, tile_output(args, group, first_token, num_tokens));
  }
};
