// Matmul of the block formats: integer dots of 32 inputs, scaled and added in float. Included inside an ISA's
// namespace and target region, after matmul-inl.h.
//
// The sum of one output runs over the blocks of k in order, in one float accumulator: see ref/matmul.cc,
// whose bits this gives. Tiles of different numbers of tokens do the same operations, so their results are
// equal.

// --- Decoding a block of 32 inputs of kLanes rows, starting at row `lane` of the group ---

KVASIR_FORCE_INLINE void load_nibbles(const PackedNibbles& nibbles, int lane, CodeLanes* codes) {
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    const CodeLanes both = load_codes(nibbles[j] + 4 * lane);
    codes[j] = low_nibbles(both);
    codes[j + 4] = high_nibbles(both);
  }
}

KVASIR_FORCE_INLINE void add_fifth_bits(const PackedFifthBits& high_bits, int lane, CodeLanes* codes) {
  const CodeLanes plane = load_codes(high_bits + 4 * lane);
  codes[0] = or_bits<4, 0x10>(codes[0], plane);
  codes[1] = or_bits<3, 0x10>(codes[1], plane);
  codes[2] = or_bits<2, 0x10>(codes[2], plane);
  codes[3] = or_bits<1, 0x10>(codes[3], plane);
  codes[4] = or_bits<0, 0x10>(codes[4], plane);
  codes[5] = or_bits<-1, 0x10>(codes[5], plane);
  codes[6] = or_bits<-2, 0x10>(codes[6], plane);
  codes[7] = or_bits<-3, 0x10>(codes[7], plane);
}

KVASIR_FORCE_INLINE void add_sixth_bits(const PackedSixthBits& high_bits, int lane, CodeLanes* codes) {
#pragma GCC unroll 2
  for (int half = 0; half < 2; ++half) {
    const CodeLanes plane = load_codes(high_bits[half] + 4 * lane);
    codes[4 * half] = or_bits<4, 0x30>(codes[4 * half], plane);
    codes[4 * half + 1] = or_bits<2, 0x30>(codes[4 * half + 1], plane);
    codes[4 * half + 2] = or_bits<0, 0x30>(codes[4 * half + 2], plane);
    codes[4 * half + 3] = or_bits<-2, 0x30>(codes[4 * half + 3], plane);
  }
}

template <class Unit>
KVASIR_FORCE_INLINE void decode(const Unit& unit, int block, int lane, CodeLanes* codes) {
  if constexpr (Unit::kBits == 8) {
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) codes[j] = load_byte_codes(unit.codes[block][j] + 4 * lane);
  } else {
    load_nibbles(unit.nibbles[block], lane, codes);
    if constexpr (Unit::kBits == 5) add_fifth_bits(unit.high_bits[block], lane, codes);
    if constexpr (Unit::kBits == 6) add_sixth_bits(unit.high_bits[block], lane, codes);
  }
}

// value = scale * (code - zero)
struct Symmetric {
  FloatLanes scale;
};
// value = scale * code + min
struct Affine {
  FloatLanes scale, min;
};
// As Symmetric, with scales of their own for the first and the last 16 inputs.
struct SymmetricHalves {
  FloatLanes low, high;
};

template <class Unit>
KVASIR_FORCE_INLINE Symmetric load_scales(const Unit& unit, int block, int lane) {
  return {load_half_lanes(unit.scales[block] + lane)};
}

KVASIR_FORCE_INLINE Affine load_scales(const PackedQ4_1& unit, int block, int lane) {
  return {load_half_lanes(unit.scales[block] + lane), load_half_lanes(unit.mins[block] + lane)};
}

KVASIR_FORCE_INLINE Affine load_scales(const PackedQ5_1& unit, int block, int lane) {
  return {load_half_lanes(unit.scales[block] + lane), load_half_lanes(unit.mins[block] + lane)};
}

// The products with 6- and 8-bit sub-scales are exact in float.
template <class SuperUnit>
KVASIR_FORCE_INLINE Affine load_sub_scales(const SuperUnit& unit, int block, int lane) {
  const FloatLanes min =
      mul(load_half_lanes(unit.min_scales + lane), load_int_lanes(unit.sub_mins[block] + lane));
  return {mul(load_half_lanes(unit.scales + lane), load_int_lanes(unit.sub_scales[block] + lane)),
          negate(min)};
}

KVASIR_FORCE_INLINE Affine load_scales(const PackedQ4_K& unit, int block, int lane) {
  return load_sub_scales(unit, block, lane);
}

KVASIR_FORCE_INLINE Affine load_scales(const PackedQ5_K& unit, int block, int lane) {
  return load_sub_scales(unit, block, lane);
}

KVASIR_FORCE_INLINE SymmetricHalves load_scales(const PackedQ6_K& unit, int block, int lane) {
  const FloatLanes scale = load_half_lanes(unit.scales + lane);
  return {mul(scale, load_int_lanes(unit.sub_scales[block][0] + lane)),
          mul(scale, load_int_lanes(unit.sub_scales[block][1] + lane))};
}

// --- Adding a block to the sums of kTokens tokens ---

template <class Unit, int kTokens>
KVASIR_FORCE_INLINE void add_block(const CodeLanes* codes, const Symmetric& weights,
                                   const ActivationBlock* const* tokens, FloatLanes* sums) {
  IntLanes dots[kTokens];
  dot_blocks<Unit::kBits, Unit::kZeroShift, kTokens>(codes, tokens, dots);
#pragma GCC unroll 16
  for (int t = 0; t < kTokens; ++t) {
    sums[t] = fma(to_float(dots[t]), mul(weights.scale, broadcast_lanes(tokens[t]->scale)), sums[t]);
  }
}

template <class Unit, int kTokens>
KVASIR_FORCE_INLINE void add_block(const CodeLanes* codes, const Affine& weights,
                                   const ActivationBlock* const* tokens, FloatLanes* sums) {
  IntLanes dots[kTokens];
  dot_blocks<Unit::kBits, 0, kTokens>(codes, tokens, dots);
#pragma GCC unroll 16
  for (int t = 0; t < kTokens; ++t) {
    sums[t] = fma(to_float(dots[t]), mul(weights.scale, broadcast_lanes(tokens[t]->scale)), sums[t]);
    sums[t] = fma(weights.min, broadcast_lanes(tokens[t]->scaled_sum), sums[t]);
  }
}

template <class Unit, int kTokens>
KVASIR_FORCE_INLINE void add_block(const CodeLanes* codes, const SymmetricHalves& weights,
                                   const ActivationBlock* const* tokens, FloatLanes* sums) {
  IntLanes low[kTokens], high[kTokens];
  dot_half_blocks<Unit::kBits, Unit::kZeroShift, kTokens>(codes, tokens, low, high);
#pragma GCC unroll 16
  for (int t = 0; t < kTokens; ++t) {
    const FloatLanes scale = broadcast_lanes(tokens[t]->scale);
    sums[t] = fma(to_float(low[t]), mul(weights.low, scale), sums[t]);
    sums[t] = fma(to_float(high[t]), mul(weights.high, scale), sums[t]);
  }
}

// --- Tiles: one group of 16 rows by kTokens tokens ---

// Tokens whose integer dots are interleaved, to hide the latency of the dot instruction.
constexpr int interleaved_tokens(int num_tokens) { return num_tokens == 1 ? 1 : 2; }

// Adds one block of every token of the tile.
template <class Unit, int kTokens, class Scales>
KVASIR_FORCE_INLINE void add_tile_block(const CodeLanes* codes, const Scales& scales,
                                        const ConstActivationRow* rows, std::int64_t b, FloatLanes* sums) {
  constexpr int kStep = interleaved_tokens(kTokens);
  static_assert(kTokens % kStep == 0);
#pragma GCC unroll 16
  for (int t = 0; t < kTokens; t += kStep) {
    const ActivationBlock* blocks[kStep];
#pragma GCC unroll 16
    for (int i = 0; i < kStep; ++i) blocks[i] = rows[t + i].blocks + b;
    add_block<Unit, kStep>(codes, scales, blocks, sums + t);
  }
}

// Adds the residual of the block for those tokens whose outlier it is. The others do nothing at all, so that
// their sums do not depend on company even where a scale is infinite.
template <class Unit, int kTokens, class Scales>
KVASIR_FORCE_INLINE void add_tile_residuals(const CodeLanes* codes, const Scales& scales,
                                            const ConstActivationRow* rows, std::int64_t b,
                                            FloatLanes* sums) {
#pragma GCC unroll 16
  for (int t = 0; t < kTokens; ++t) {
    if (!rows[t].is_outlier(b)) continue;
    const ActivationBlock* residual = rows[t].residuals + b;
    add_block<Unit, 1>(codes, scales, &residual, sums + t);
  }
}

// Which of the 64 blocks from 64 * word are an outlier of some token.
template <int kTokens>
KVASIR_FORCE_INLINE std::uint64_t tile_outliers(const ConstActivationRow* rows, std::int64_t word) {
  std::uint64_t outliers = 0;
  for (int t = 0; t < kTokens; ++t) outliers |= rows[t].outliers[word];
  return outliers;
}

template <class Unit, int kTokens>
void block_tile(const Unit* units, std::int64_t num_blocks, const ConstActivationRow* rows,
                const TileOutput& output) {
  for (int lane = 0; lane < output.num_rows; lane += kLanes) {
    FloatLanes sums[kTokens];
#pragma GCC unroll 16
    for (int t = 0; t < kTokens; ++t) sums[t] = zero_lanes();
    std::uint64_t outliers = 0;
    for (std::int64_t b = 0; b < num_blocks; ++b, outliers >>= 1) {
      if (b % 64 == 0) outliers = tile_outliers<kTokens>(rows, b / 64);
      const Unit& unit = units[b / Unit::kBlocks];
      const int block = static_cast<int>(b % Unit::kBlocks);
      constexpr int kBlockBytes = sizeof(Unit) / Unit::kBlocks;
      prefetch_ahead<kBlockBytes>(reinterpret_cast<const char*>(&unit) + block * kBlockBytes);
      CodeLanes codes[8];
      decode(unit, block, lane, codes);
      const auto scales = load_scales(unit, block, lane);
      add_tile_block<Unit, kTokens>(codes, scales, rows, b, sums);
      if ((outliers & 1) != 0) [[unlikely]]
        add_tile_residuals<Unit, kTokens>(codes, scales, rows, b, sums);
    }
    store_tile<kTokens>(output, lane, sums);
  }
}

// One group by 16 tokens: 16 sums, and the 8 vectors of a decoded block stay in registers for all of them.
template <class Unit>
struct BlockTile {
  static constexpr int kMaxGroups = 1;
  static constexpr int kMaxTokens = 16;

  template <int kGroups, int kTokens>
  static void run(const MatmulArgs& args, std::int64_t group, std::int32_t first_token, int num_tokens) {
    const std::int64_t row_bytes = quantized_row_bytes(args.k);
    ConstActivationRow rows[kTokens];
    for (int t = 0; t < kTokens; ++t) {
      const std::int64_t token = token_of_row(t, first_token, num_tokens);
      const void* quantized = static_cast<const char*>(args.quantized) + token * row_bytes;
      rows[t] = activation_row(quantized, args.k);
    }
    const Unit* units = static_cast<const Unit*>(args.weights) + group * units_of<Unit>(args.k);
    block_tile<Unit, kTokens>(units, args.k / kActivationBlock, rows,
                              tile_output(args, group, first_token, num_tokens));
  }
};
