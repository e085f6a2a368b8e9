// Matmul of the fast mode's spans of 256 inputs. Included inside an ISA's namespace and target region, after
// tiles-inl.h.
//
// The sum of one output runs over the spans of k in order: the exact integer dot of a span meets the float
// sum in one fused multiply-add: see ref/matmul.cc, whose bits this gives.

inline constexpr int kW8a8Groups = kLanes == kPackedRows ? kGroupsPerW8a8Panel : 1;
inline constexpr int kW8a8Tokens = 4;

// Tokens [column, column + kTokens) of a tile; those beyond its width are computed from whatever lies there
// and not stored.
struct W8a8Columns {
  const ConstActivationTile& tile;
  std::int32_t first_token;
  int column;

  std::int64_t at(std::int64_t block) const { return block * tile.width + column; }
};

// Groups of 4 of a block where one of kTokens tokens has outlier codes.
template <int kTokens>
KVASIR_FORCE_INLINE unsigned outlier_groups_of(const W8a8Columns& in, std::int64_t block) {
  const std::uint8_t* flags = in.tile.outlier_groups + block * kTokensPerActivationTile + in.column;
  unsigned groups_of_4 = 0;
#pragma GCC unroll 4
  for (int t = 0; t < kTokens; ++t) groups_of_4 |= flags[t];
  return groups_of_4;
}

// The weights of one span of kGroups groups, from row `lane` of each.
template <int kGroups>
struct W8a8Span {
  const std::uint8_t* codes[kGroups];
  std::int64_t first_block;
  int num_blocks;
  int lane;
};

// Adds group of 4 j of the span, of which a token's activations are at q + t * kStride.
template <int kStride, int kGroups, int kTokens>
KVASIR_FORCE_INLINE void add_span_group_of_4(const W8a8Span<kGroups>& span, int j, const std::int8_t* q,
                                             IntLanes (&dots)[kTokens][kGroups]) {
  CodeLanes groups_of_4[kGroups];
#pragma GCC unroll 4
  for (int g = 0; g < kGroups; ++g) {
    groups_of_4[g] = load_byte_codes(span.codes[g] + j * kGroupOf4Bytes + 4 * span.lane);
  }
#pragma GCC unroll 4
  for (int t = 0; t < kTokens; ++t) {
    const GroupOf4Lanes group_of_4 = broadcast_group_of_4(q + t * kStride);
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g)
      dots[t][g] = add_byte_group_of_4(dots[t][g], groups_of_4[g], group_of_4);
  }
}

// The integer dots of one span of kTokens tokens.
template <int kGroups, int kTokens>
KVASIR_FORCE_INLINE void dot_span(const W8a8Span<kGroups>& span, const W8a8Columns& in,
                                  IntLanes (&dots)[kTokens][kGroups]) {
  for (int t = 0; t < kTokens; ++t) {
    for (int g = 0; g < kGroups; ++g) dots[t][g] = zero_int_lanes();
  }
  for (int b = 0; b < span.num_blocks; ++b) {
    unsigned outlier_groups = outlier_groups_of<kTokens>(in, span.first_block + b);
    for (; outlier_groups != 0; outlier_groups &= outlier_groups - 1) {
      const int j = std::countr_zero(outlier_groups);
      const OutlierCodes* x = in.tile.outliers + in.at(span.first_block + b);
      add_span_group_of_4<sizeof(OutlierCodes)>(span, b * kGroupsOf4PerBlock + j, x->q + 4 * j, dots);
    }
  }
  const ActivationBlock* x = in.tile.blocks + in.at(span.first_block);
#pragma GCC unroll 4
  for (int t = 0; t < kTokens; ++t) {
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) dots[t][g] = add_outliers(start_byte_sum(x[t]), dots[t][g]);
  }
  for (int b = 0; b < span.num_blocks; ++b, x += in.tile.width) {
    if constexpr (kTokens == 1) {
      for (int g = 0; g < kGroups; ++g) {
        prefetch_ahead<sizeof(PackedBytes)>(reinterpret_cast<const char*>(span.codes[g]) +
                                            b * sizeof(PackedBytes));
      }
    }
#pragma GCC unroll 8
    for (int j = 0; j < kGroupsOf4PerBlock; ++j) {
      add_span_group_of_4<sizeof(ActivationBlock)>(span, b * kGroupsOf4PerBlock + j, x->q + 4 * j, dots);
    }
  }
}

// Adds one span to the sums.
template <int kGroups, int kTokens>
KVASIR_FORCE_INLINE void add_span(const W8a8Span<kGroups>& span, const W8a8Columns& in,
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
void w8a8_tile(const MatmulArgs& args, std::int64_t group, const W8a8Columns& in) {
  const auto* first = static_cast<const std::uint8_t*>(args.weights) + group * w8a8_group_bytes(args.k);
  for (int lane = 0; lane < kPackedRows; lane += kLanes) {
    FloatLanes sums[kTokens][kGroups];
    for (int t = 0; t < kTokens; ++t) {
      for (int g = 0; g < kGroups; ++g) sums[t][g] = zero_lanes();
    }
    for (std::int64_t s = 0; s < num_spans(args.k); ++s) {
      W8a8Span<kGroups> span{
          .first_block = s * kBlocksPerSpan, .num_blocks = blocks_of_span(args.k, s), .lane = lane};
      for (int g = 0; g < kGroups; ++g) {
        span.codes[g] = first + g * w8a8_group_bytes(args.k) + span_offset_bytes(s);
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
void w8a8_groups(const MatmulArgs& args, std::int64_t group, std::int32_t begin, std::int32_t end) {
  for (std::int32_t first = begin; first < end; first += kTokensPerActivationTile) {
    const ConstActivationTile tile = activation_tile(args.quantized, args.k, first, args.num_tokens);
    for (int column = 0; column < tile.width; column += kW8a8Tokens) {
      const W8a8Columns in{tile, first, column};
      if (tile.width - column == 1) {
        w8a8_tile<kGroups, 1>(args, group, in);
      } else {
        w8a8_tile<kGroups, kW8a8Tokens>(args, group, in);
      }
    }
  }
}

void w8a8_matmul(const MatmulArgs& args) {
  for (std::int32_t pass = 0; pass < args.num_tokens; pass += kPassTokens) {
    const auto pass_end = static_cast<std::int32_t>(smaller(pass + kPassTokens, args.num_tokens));
    std::int64_t group = args.group_begin;
    for (; group + kW8a8Groups <= args.group_end; group += kW8a8Groups) {
      w8a8_groups<kW8a8Groups>(args, group, pass, pass_end);
    }
    for (; group < args.group_end; ++group) w8a8_groups<1>(args, group, pass, pass_end);
  }
}
