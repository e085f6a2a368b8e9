// Matmul of the fast mode's spans of 256 inputs. Included inside an ISA's namespace and target region, after
// matmul-inl.h.
//
// The sum of one output runs over the spans of k in order: the exact integer dot of a span meets the float
// sum in one fused multiply-add, then that of its residuals where the token's span is an outlier: see
// ref/matmul.cc, whose bits this gives.

inline constexpr int kWideGroups = kLanes == kPackedRows ? kGroupsPerWidePanel : 1;
inline constexpr int kWideTokens = 4;

// The integer dots of one span of kGroups groups and kTokens tokens. `x` is the span's first block.
template <int kGroups, int kTokens>
KVASIR_FORCE_INLINE void dot_span(const std::uint8_t* const* codes, int num_blocks, int lane,
                                  const ActivationBlock* x, std::int64_t width,
                                  IntLanes (&dots)[kTokens][kGroups]) {
#pragma GCC unroll 4
  for (int t = 0; t < kTokens; ++t) {
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) dots[t][g] = start_byte_sum(x[t]);
  }
  for (int b = 0; b < num_blocks; ++b, x += width) {
    if constexpr (kTokens == 1) {
      for (int g = 0; g < kGroups; ++g) {
        prefetch_ahead<sizeof(PackedBytes)>(reinterpret_cast<const char*>(codes[g]) +
                                            b * sizeof(PackedBytes));
      }
    }
#pragma GCC unroll 8
    for (int j = 0; j < kPackedQuads; ++j) {
      CodeLanes quads[kGroups];
#pragma GCC unroll 4
      for (int g = 0; g < kGroups; ++g) {
        quads[g] = load_byte_codes(codes[g] + (b * kPackedQuads + j) * kPackedQuadBytes + 4 * lane);
      }
#pragma GCC unroll 4
      for (int t = 0; t < kTokens; ++t) {
        const QuadLanes q = broadcast_quad(x[t].q + 4 * j);
#pragma GCC unroll 4
        for (int g = 0; g < kGroups; ++g) dots[t][g] = add_byte_quad(dots[t][g], quads[g], q);
      }
    }
  }
}

// Adds one span to the sums.
template <int kGroups, int kTokens>
KVASIR_FORCE_INLINE void add_span(const std::uint8_t* const* spans, int num_blocks, int lane,
                                  const ActivationBlock* x, std::int64_t width,
                                  FloatLanes (&sums)[kTokens][kGroups]) {
  IntLanes dots[kTokens][kGroups];
  dot_span<kGroups, kTokens>(spans, num_blocks, lane, x, width, dots);
  const std::int64_t scales = num_blocks * static_cast<std::int64_t>(sizeof(PackedBytes));
#pragma GCC unroll 4
  for (int g = 0; g < kGroups; ++g) {
    const FloatLanes weight = load_lanes(reinterpret_cast<const float*>(spans[g] + scales) + lane);
#pragma GCC unroll 4
    for (int t = 0; t < kTokens; ++t) {
      sums[t][g] = fma(to_float(dots[t][g]), mul(weight, broadcast_lanes(x[t].scale)), sums[t][g]);
    }
  }
}

// Tokens [column, column + kTokens) of a tile; those beyond its width are computed from whatever lies there
// and not stored.
struct WideColumns {
  const ConstActivationTile& tile;
  std::int32_t first_token;
  int column;
};

template <int kTokens>
KVASIR_FORCE_INLINE bool has_wide_outlier(const std::uint8_t* flags) {
  int any = 0;
#pragma GCC unroll 4
  for (int t = 0; t < kTokens; ++t) any |= flags[t];
  return any != 0;
}

template <int kGroups, int kTokens>
void wide_tile(const MatmulArgs& args, std::int64_t group, const WideColumns& in) {
  const auto* first = static_cast<const std::uint8_t*>(args.weights) + group * wide_group_bytes(args.k);
  for (int lane = 0; lane < kPackedRows; lane += kLanes) {
    FloatLanes sums[kTokens][kGroups];
    for (int t = 0; t < kTokens; ++t) {
      for (int g = 0; g < kGroups; ++g) sums[t][g] = zero_lanes();
    }
    for (std::int64_t s = 0; s < num_spans(args.k); ++s) {
      const std::uint8_t* spans[kGroups];
      for (int g = 0; g < kGroups; ++g) {
        spans[g] = first + g * wide_group_bytes(args.k) + span_offset_bytes(s);
      }
      const int num_blocks = blocks_of_span(args.k, s);
      const std::int64_t at = s * kBlocksPerSpan * in.tile.width + in.column;
      add_span<kGroups, kTokens>(spans, num_blocks, lane, in.tile.blocks + at, in.tile.width, sums);
      const std::uint8_t* flags =
          in.tile.outliers + s * kBlocksPerSpan * kTokensPerActivationTile + in.column;
      if (has_wide_outlier<kTokens>(flags)) {
        add_span<kGroups, kTokens>(spans, num_blocks, lane, in.tile.residuals + at, in.tile.width, sums);
      }
    }
    const int num_tokens = static_cast<int>(in.tile.width) - in.column;
    for (int g = 0; g < kGroups; ++g) {
      FloatLanes of_group[kTokens];
#pragma GCC unroll 4
      for (int t = 0; t < kTokens; ++t) of_group[t] = sums[t][g];
      const TileOutput output = tile_output(args, group + g, in.first_token + in.column, num_tokens);
      if (output.num_rows > lane) store_tile<kTokens>(output, lane, of_group);
    }
  }
}

template <int kGroups>
void wide_groups(const MatmulArgs& args, std::int64_t group, std::int32_t begin, std::int32_t end) {
  for (std::int32_t first = begin; first < end; first += kTokensPerActivationTile) {
    const ConstActivationTile tile = activation_tile(args.quantized, args.k, first, args.num_tokens);
    for (int column = 0; column < tile.width; column += kWideTokens) {
      const WideColumns in{tile, first, column};
      if (tile.width - column == 1) {
        wide_tile<kGroups, 1>(args, group, in);
      } else {
        wide_tile<kGroups, kWideTokens>(args, group, in);
      }
    }
  }
}

void wide_matmul(const MatmulArgs& args) {
  for (std::int32_t pass = 0; pass < args.num_tokens; pass += kPassTokens) {
    const auto pass_end = static_cast<std::int32_t>(smaller(pass + kPassTokens, args.num_tokens));
    std::int64_t group = args.group_begin;
    for (; group + kWideGroups <= args.group_end; group += kWideGroups) {
      wide_groups<kWideGroups>(args, group, pass, pass_end);
    }
    for (; group < args.group_end; ++group) wide_groups<1>(args, group, pass, pass_end);
  }
}
