// Matmul of F32, F16 and BF16 weights against float activations. Included inside an ISA's namespace and
// target region, after tiles-inl.h.
//
// The sum of one output is one fused multiply-add per input, in order: see ref/matmul.cc, whose bits this
// gives.

KVASIR_FORCE_INLINE FloatLanes load_column(const PackedF32& column, int lane) {
  return load_lanes(column.rows + lane);
}
KVASIR_FORCE_INLINE FloatLanes load_column(const PackedF16& column, int lane) {
  return load_half_lanes(column.rows + lane);
}
KVASIR_FORCE_INLINE FloatLanes load_column(const PackedBF16& column, int lane) {
  return load_bf16_lanes(column.rows + lane);
}

// Adds input i to the sums [kGroups][kTokens].
template <class Column, int kGroups, int kTokens>
KVASIR_FORCE_INLINE void add_column(const Column* const* groups, std::int64_t i, int lane, const float* const* rows,
                                    FloatLanes* sums) {
  FloatLanes weights[kGroups];
#pragma GCC unroll 4
  for (int g = 0; g < kGroups; ++g) weights[g] = load_column(groups[g][i], lane);
#pragma GCC unroll 8
  for (int t = 0; t < kTokens; ++t) {
    const FloatLanes x = broadcast_lanes(rows[t][i]);
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) sums[g * kTokens + t] = fma(weights[g], x, sums[g * kTokens + t]);
  }
}

// kGroups neighbouring groups, of which `outputs` tells the rows.
template <class Column, int kGroups, int kTokens>
void column_tile(const Column* const* groups, std::int64_t k, const float* const* rows,
                 const TileOutput* outputs) {
  for (int lane = 0; lane < outputs[0].num_rows; lane += kLanes) {
    FloatLanes sums[kGroups * kTokens];
#pragma GCC unroll 32
    for (int i = 0; i < kGroups * kTokens; ++i) sums[i] = zero_lanes();
    // Several inputs at once need more registers than there are: GCC 12 then moves sums to and fro.
#pragma GCC unroll 1
    for (std::int64_t i = 0; i < k; ++i) {
#pragma GCC unroll 4
      for (int g = 0; g < kGroups; ++g) prefetch_ahead<sizeof(Column)>(reinterpret_cast<const char*>(groups[g] + i));
      add_column<Column, kGroups, kTokens>(groups, i, lane, rows, sums);
    }
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) store_tile<kTokens>(outputs[g], lane, sums + g * kTokens);
  }
}

// 3 groups by 8 tokens: 24 sums, and each input is loaded once for three multiply-adds.
template <class Column>
struct ColumnTile {
  static constexpr int kMaxGroups = 3;
  static constexpr int kMaxTokens = 8;

  template <int kGroups, int kTokens>
  static void run(const MatmulArgs& args, std::int64_t group, std::int32_t first_token, int num_tokens) {
    const float* rows[kTokens];
    for (int t = 0; t < kTokens; ++t) rows[t] = args.x + token_of_row(t, first_token, num_tokens) * args.k;
    const char* weights = static_cast<const char*>(args.weights);
    const Column* groups[kGroups];
    TileOutput outputs[kGroups];
    for (int g = 0; g < kGroups; ++g) {
      groups[g] = reinterpret_cast<const Column*>(weights + (group + g) * column_group_bytes<Column>(args.k));
      outputs[g] = tile_output(args, group + g, first_token, num_tokens);
    }
    column_tile<Column, kGroups, kTokens>(groups, args.k, rows, outputs);
  }
};
