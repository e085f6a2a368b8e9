// How a matmul is cut into tiles of a few groups of 16 rows by a few tokens, and how a tile is stored.
// Included inside an ISA's namespace and target region, after its dot.h.

inline constexpr int kPassTokens = 128;  // whose activations should stay in the L2 cache
// How far ahead of its use a weight is asked for. Near where units are read nearly in order, so that the
// hardware asks as well: two cores of a Xeon read such from memory at 33 GB/s at 3 KB and at 30 at 8 KB, a
// core of a Zen 4 EPYC reads Q4_0, Q4_1 and Q8_0 at 27 to 29. Far where a unit is several streams: there that
// core reads Q5_0, Q4_K and Q6_K at 18, 16 and 14 GB/s at 3 KB and at 24 to 28 at 7 KB (matmul_bench, k 2048,
// one token).
inline constexpr int kNearPrefetchBytes = 3072;
inline constexpr int kFarPrefetchBytes = 7168;

KVASIR_FORCE_INLINE std::int64_t smaller(std::int64_t a, std::int64_t b) { return a < b ? a : b; }

// The outputs of one group for the tokens of a tile.
struct TileOutput {
  float* out;           // of the tile's first token and the group's first row
  std::int64_t stride;  // floats between tokens
  int num_rows;         // of the group that exist
  int num_tokens;       // of the tile that exist
  bool accumulate;
};

KVASIR_FORCE_INLINE TileOutput tile_output(const MatmulArgs& args, std::int64_t group,
                                           std::int32_t first_token, int num_tokens) {
  const std::int64_t first_row = group * kRowsPerGroup;
  return {args.out + first_token * args.out_stride + first_row, args.out_stride,
          static_cast<int>(smaller(args.num_rows - first_row, kRowsPerGroup)), num_tokens, args.accumulate};
}

template <int kTokens>
KVASIR_FORCE_INLINE void store_tile(const TileOutput& output, int lane, const FloatLanes* sums) {
  const int num_rows = static_cast<int>(smaller(output.num_rows - lane, kLanes));
#pragma GCC unroll 16
  for (int t = 0; t < kTokens; ++t) {
    if (t >= output.num_tokens) return;
    float* out = output.out + t * output.stride + lane;
    store_lanes(out, output.accumulate ? add(load_lanes(out, num_rows), sums[t]) : sums[t], num_rows);
  }
}

// The token that row t of a tile reads. Rows past the last token repeat it; their sums are not stored.
KVASIR_FORCE_INLINE std::int64_t token_of_row(int t, std::int32_t first_token, int num_tokens) {
  return first_token + smaller(t, num_tokens - 1);
}

// Asks for the kBytes of weights that lie kAhead beyond p. Past the end of a matrix that is harmless.
// The hardware's own prefetcher loses the weights among the many streams of activations.
template <int kBytes, int kAhead = kNearPrefetchBytes>
KVASIR_FORCE_INLINE void prefetch_ahead(const char* p) {
#pragma GCC unroll 16
  for (int offset = 0; offset < kBytes; offset += 64) prefetch_into_l2(p + kAhead + offset);
}

// Runs the smallest tile that holds num_tokens (at most Tile::kMaxTokens) tokens.
template <class Tile, int kGroups>
void run_tile(const MatmulArgs& args, std::int64_t group, std::int32_t first_token, int num_tokens) {
  if constexpr (Tile::kMaxTokens == 16) {
    if (num_tokens > 12) return Tile::template run<kGroups, 16>(args, group, first_token, num_tokens);
    if (num_tokens > 8) return Tile::template run<kGroups, 12>(args, group, first_token, num_tokens);
  }
  if (num_tokens > 6) return Tile::template run<kGroups, 8>(args, group, first_token, num_tokens);
  if (num_tokens > 4) return Tile::template run<kGroups, 6>(args, group, first_token, num_tokens);
  if (num_tokens > 2) return Tile::template run<kGroups, 4>(args, group, first_token, num_tokens);
  if (num_tokens > 1) return Tile::template run<kGroups, 2>(args, group, first_token, num_tokens);
  return Tile::template run<kGroups, 1>(args, group, first_token, num_tokens);
}

template <class Tile, int kGroups>
void run_tiles(const MatmulArgs& args, std::int64_t group, std::int32_t token_begin, std::int32_t token_end) {
  for (std::int32_t token = token_begin; token < token_end; token += Tile::kMaxTokens) {
    run_tile<Tile, kGroups>(args, group, token,
                            static_cast<int>(smaller(Tile::kMaxTokens, token_end - token)));
  }
}

// Groups outside, tiles of tokens inside: a group's weights come from memory once for every kPassTokens
// tokens, whose activations stay in the L2 cache.
template <class Tile>
void matmul(const MatmulArgs& args) {
  for (std::int32_t pass = 0; pass < args.num_tokens; pass += kPassTokens) {
    const std::int32_t pass_end = static_cast<std::int32_t>(smaller(pass + kPassTokens, args.num_tokens));
    std::int64_t group = args.group_begin;
    for (; group + Tile::kMaxGroups <= args.group_end; group += Tile::kMaxGroups) {
      run_tiles<Tile, Tile::kMaxGroups>(args, group, pass, pass_end);
    }
    for (; group < args.group_end; ++group) run_tiles<Tile, 1>(args, group, pass, pass_end);
  }
}
