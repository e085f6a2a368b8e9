// Matmul of the fast mode's spans of 256 inputs. Included inside an ISA's namespace and target region, after
// tiles-inl.h.
//
// The sum of one output runs over the spans of k in order: the exact integer dot of a span meets the float
// sum in one fused multiply-add: see ref/matmul.cc, whose bits this gives.

inline constexpr int kWideGroups = kLanes == kPackedRows ? kGroupsPerWidePanel : 1;
inline constexpr int kWideTokens = 4;

// Tokens [column, column + kTokens) of a tile; those beyond its width are computed from whatever lies there
// and not stored.
struct WideColumns {
  const ConstActivationTile& tile;
  std::int32_t first_token;
  int column;

  std::int64_t at(std::int64_t block) const { return block * tile.width + column; }
};

// Quads of a block where one of kTokens tokens has coarse codes.
template <int kTokens>
KVASIR_FORCE_INLINE unsigned coarse_quads_of(const WideColumns& in, std::int64_t block) {
  const std::uint8_t* flags = in.tile.coarse_quads + block * kTokensPerActivationTile + in.column;
  unsigned quads = 0;
#pragma GCC unroll 4
  for (int t = 0; t < kTokens; ++t) quads |= flags[t];
  return quads;
}

// The weights of one span of kGroups groups, from row `lane` of each.
template <int kGroups>
struct WideSpan {
  const std::uint8_t* codes[kGroups];
  std::int64_t first_block;
  int num_blocks;
  int lane;
};

// Adds quad j of the span, of which a token's activations are at q + t * kStride.
template <int kStride, int kGroups, int kTokens>
KVASIR_FORCE_INLINE void add_span_quad(const WideSpan<kGroups>& span, int j, const std::int8_t* q,
                                       IntLanes (&dots)[kTokens][kGroups]) {
  CodeLanes quads[kGroups];
#pragma GCC unroll 4
  for (int g = 0; g < kGroups; ++g) {
    quads[g] = load_byte_codes(span.codes[g] + j * kPackedQuadBytes + 4 * span.lane);
  }
#pragma GCC unroll 4
  for (int t = 0; t < kTokens; ++t) {
    const QuadLanes quad = broadcast_quad(q + t * kStride);
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) dots[t][g] = add_byte_quad(dots[t][g], quads[g], quad);
  }
}

// The integer dots of one span of kTokens tokens.
template <int kGroups, int kTokens>
KVASIR_FORCE_INLINE void dot_span(const WideSpan<kGroups>& span, const WideColumns& in,
                                  IntLanes (&dots)[kTokens][kGroups]) {
  for (int t = 0; t < kTokens; ++t) {
    for (int g = 0; g < kGroups; ++g) dots[t][g] = zero_int_lanes();
  }
  for (int b = 0; b < span.num_blocks; ++b) {
    unsigned coarse_quads = coarse_quads_of<kTokens>(in, span.first_block + b);
    for (; coarse_quads != 0; coarse_quads &= coarse_quads - 1) {
      const int j = std::countr_zero(coarse_quads);
      const CoarseCodes* x = in.tile.coarse + in.at(span.first_block + b);
      add_span_quad<sizeof(CoarseCodes)>(span, b * kPackedQuads + j, x->q + 4 * j, dots);
    }
  }
  const ActivationBlock* x = in.tile.blocks + in.at(span.first_block);
#pragma GCC unroll 4
  for (int t = 0; t < kTokens; ++t) {
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) dots[t][g] = add_coarse(start_byte_sum(x[t]), dots[t][g]);
  }
  for (int b = 0; b < span.num_blocks; ++b, x += in.tile.width) {
    if constexpr (kTokens == 1) {
      for (int g = 0; g < kGroups; ++g) {
        prefetch_ahead<sizeof(PackedBytes)>(reinterpret_cast<const char*>(span.codes[g]) +
                                            b * sizeof(PackedBytes));
      }
    }
#pragma GCC unroll 8
    for (int j = 0; j < kPackedQuads; ++j) {
      add_span_quad<sizeof(ActivationBlock)>(span, b * kPackedQuads + j, x->q + 4 * j, dots);
    }
  }
}

// Adds one span to the sums.
template <int kGroups, int kTokens>
KVASIR_FORCE_INLINE void add_span(const WideSpan<kGroups>& span, const WideColumns& in,
                                  FloatLanes (&sums)[kTokens][kGroups]) {
  IntLanes dots[kTokens][kGroups];
  dot_span(span, in, dots);
  const ActivationBlock* x = in.tile.blocks + in.at(span.first_block);
  const std::int64_t scales = span.num_blocks * static_cast<std::int64_t>(sizeof(PackedBytes));
#pragma GCC unroll 4
  for (int g = 0; g < kGroups; ++g) {
    const FloatLanes weight = load_lanes(reinterpret_cast<const float*>(span.codes[g] + scales) + span.lane);
#pragma GCC unroll 4
    for (int t = 0; t < kTokens; ++t) {
      sums[t][g] = fma(to_float(dots[t][g]), mul(weight, broadcast_lanes(x[t].scale)), sums[t][g]);
    }
  }
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
      WideSpan<kGroups> span{
          .first_block = s * kBlocksPerSpan, .num_blocks = blocks_of_span(args.k, s), .lane = lane};
      for (int g = 0; g < kGroups; ++g) {
        span.codes[g] = first + g * wide_group_bytes(args.k) + span_offset_bytes(s);
      }
      add_span(span, in, sums);
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
