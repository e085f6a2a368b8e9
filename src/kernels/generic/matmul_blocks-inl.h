// Matmul of the block formats: integer dots of 32 inputs, scaled and added in float. Included inside an ISA's
// namespace and target region, after matmul-inl.h.
//
// The sum of one output runs over the blocks of k in order, in one float accumulator: see ref/matmul.cc,
// whose bits this gives. Tiles of different numbers of tokens do the same operations, so their results are
// equal.

// --- Decoding a block of 32 inputs of kLanes rows, starting at row `lane` of the group ---

// The codes of Unit come out times 2^code_shift.
template <class Unit>
constexpr int code_shift() {
  return kScalesCodes && Unit::kZeroShift > 0 ? 7 - Unit::kZeroShift : 0;
}

template <int kUp>
KVASIR_FORCE_INLINE void load_nibbles(const PackedNibbles& nibbles, int lane, CodeLanes* codes) {
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    const CodeLanes both = load_codes(nibbles[j] + 4 * lane);
    codes[j] = low_nibbles<kUp>(both);
    codes[j + 4] = high_nibbles<kUp>(both);
  }
}

template <int kUp>
KVASIR_FORCE_INLINE void add_fifth_bits(const PackedFifthBits& high_bits, int lane, CodeLanes* codes) {
  constexpr int kMask = 0x10 << kUp;
  const CodeLanes plane = load_codes(high_bits + 4 * lane);
  codes[0] = or_bits<kUp + 4, kMask>(codes[0], plane);
  codes[1] = or_bits<kUp + 3, kMask>(codes[1], plane);
  codes[2] = or_bits<kUp + 2, kMask>(codes[2], plane);
  codes[3] = or_bits<kUp + 1, kMask>(codes[3], plane);
  codes[4] = or_bits<kUp, kMask>(codes[4], plane);
  codes[5] = or_bits<kUp - 1, kMask>(codes[5], plane);
  codes[6] = or_bits<kUp - 2, kMask>(codes[6], plane);
  codes[7] = or_bits<kUp - 3, kMask>(codes[7], plane);
}

template <int kUp>
KVASIR_FORCE_INLINE void add_sixth_bits(const PackedSixthBits& high_bits, int lane, CodeLanes* codes) {
  constexpr int kMask = 0x30 << kUp;
#pragma GCC unroll 2
  for (int half = 0; half < 2; ++half) {
    const CodeLanes plane = load_codes(high_bits[half] + 4 * lane);
    codes[4 * half] = or_bits<kUp + 4, kMask>(codes[4 * half], plane);
    codes[4 * half + 1] = or_bits<kUp + 2, kMask>(codes[4 * half + 1], plane);
    codes[4 * half + 2] = or_bits<kUp, kMask>(codes[4 * half + 2], plane);
    codes[4 * half + 3] = or_bits<kUp - 2, kMask>(codes[4 * half + 3], plane);
  }
}

KVASIR_FORCE_INLINE void decode(const SplitUnit& unit, int block, int lane, CodeLanes* codes) {
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    const CodeLanes high = load_codes(unit.high.nibbles[block][j] + 4 * lane);
    const CodeLanes low = load_codes(unit.low.nibbles[block][j] + 4 * lane);
    codes[j] = join_low_nibbles(high, low);
    codes[j + 4] = join_high_nibbles(high, low);
  }
}

template <class Unit>
KVASIR_FORCE_INLINE void decode(const Unit& unit, int block, int lane, CodeLanes* codes) {
  constexpr int kUp = code_shift<Unit>();
  if constexpr (Unit::kBits == 8) {
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) codes[j] = load_byte_codes(unit.codes[block][j] + 4 * lane);
  } else {
    load_nibbles<kUp>(unit.nibbles[block], lane, codes);
    if constexpr (Unit::kBits == 5) add_fifth_bits<kUp>(unit.high_bits[block], lane, codes);
    if constexpr (Unit::kBits == 6) add_sixth_bits<kUp>(unit.high_bits[block], lane, codes);
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

// scale / 2^code_shift
template <class Unit>
KVASIR_FORCE_INLINE FloatLanes scale_of_codes(FloatLanes scale) {
  constexpr int kUp = code_shift<Unit>();
  return kUp == 0 ? scale : mul(scale, broadcast_lanes(1.0f / (1 << kUp)));
}

template <class Unit>
KVASIR_FORCE_INLINE Symmetric load_scales(const Unit& unit, int block, int lane) {
  return {scale_of_codes<Unit>(load_half_lanes(unit.scales[block] + lane))};
}

KVASIR_FORCE_INLINE Symmetric load_scales(const SplitUnit& unit, int block, int lane) {
  return {load_half_lanes(unit.high.scales[block] + lane)};
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
  const FloatLanes scale = scale_of_codes<PackedQ6_K>(load_half_lanes(unit.scales + lane));
  return {mul(scale, load_int_lanes(unit.sub_scales[block][0] + lane)),
          mul(scale, load_int_lanes(unit.sub_scales[block][1] + lane))};
}

// --- Asking for a block ahead of its use ---

template <class Unit>
KVASIR_FORCE_INLINE void prefetch_block(const Unit& unit, int block) {
  constexpr int kBlockBytes = sizeof(Unit) / Unit::kBlocks;
  prefetch_ahead<kBlockBytes>(reinterpret_cast<const char*>(&unit) + block * kBlockBytes);
}
KVASIR_FORCE_INLINE void prefetch_block(const SplitUnit& unit, int block) {
  prefetch_block(unit.high, block);
  prefetch_block(unit.low, block);
}

// --- Adding a block to the sums of kTokens tokens, whose blocks of activations are neighbours ---

template <class Unit, int kTokens>
KVASIR_FORCE_INLINE void add_block(const CodeLanes* codes, const Symmetric& weights, const ActivationBlock* x,
                                   FloatLanes* sums) {
  IntLanes dots[kTokens];
  dot_blocks<Unit::kBits, Unit::kZeroShift, kTokens>(codes, x, dots);
#pragma GCC unroll 16
  for (int t = 0; t < kTokens; ++t) {
    sums[t] = fma(to_float(dots[t]), mul(weights.scale, broadcast_lanes(x[t].scale)), sums[t]);
  }
}

template <class Unit, int kTokens>
KVASIR_FORCE_INLINE void add_block(const CodeLanes* codes, const Affine& weights, const ActivationBlock* x,
                                   FloatLanes* sums) {
  IntLanes dots[kTokens];
  dot_blocks<Unit::kBits, 0, kTokens>(codes, x, dots);
#pragma GCC unroll 16
  for (int t = 0; t < kTokens; ++t) {
    sums[t] = fma(to_float(dots[t]), mul(weights.scale, broadcast_lanes(x[t].scale)), sums[t]);
    sums[t] = fma(weights.min, broadcast_lanes(x[t].scaled_sum), sums[t]);
  }
}

template <class Unit, int kTokens>
KVASIR_FORCE_INLINE void add_block(const CodeLanes* codes, const SymmetricHalves& weights,
                                   const ActivationBlock* x, FloatLanes* sums) {
  IntLanes low[kTokens], high[kTokens];
  dot_half_blocks<Unit::kBits, Unit::kZeroShift, kTokens>(codes, x, low, high);
#pragma GCC unroll 16
  for (int t = 0; t < kTokens; ++t) {
    const FloatLanes scale = broadcast_lanes(x[t].scale);
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
                                        const ActivationBlock* x, FloatLanes* sums) {
  constexpr int kStep = interleaved_tokens(kTokens);
  static_assert(kTokens % kStep == 0);
#pragma GCC unroll 16
  for (int t = 0; t < kTokens; t += kStep) add_block<Unit, kStep>(codes, scales, x + t, sums + t);
}

// The flags of a block's 16 tokens, as two words of eight.
struct OutlierFlags {
  std::uint64_t __attribute__((may_alias)) words[2];
};

KVASIR_FORCE_INLINE bool has_outlier(const std::uint8_t* outliers) {
  const auto& flags = *reinterpret_cast<const OutlierFlags*>(outliers);
  return (flags.words[0] | flags.words[1]) != 0;
}

// Adds the residuals of a block for each pair of tokens that has an outlier there. What is no outlier has
// zeros, which change no bit of its sum: tokens do not depend on company.
template <class Unit, int kTokens, class Scales>
KVASIR_FORCE_INLINE void add_tile_residuals(const CodeLanes* codes, const Scales& scales,
                                            const std::uint8_t* outliers, const ActivationBlock* residuals,
                                            FloatLanes* sums) {
  constexpr int kStep = interleaved_tokens(kTokens);
#pragma GCC unroll 16
  for (int t = 0; t < kTokens; t += kStep) {
    if ((outliers[t] | outliers[t + kStep - 1]) == 0) continue;
    add_block<Unit, kStep>(codes, scales, residuals + t, sums + t);
  }
}

// Columns from tile.width to kTokens hold other blocks' activations, or old ones; their sums are not stored.
template <class Unit, int kTokens, class Units>
void block_tile(const Units& units, std::int64_t num_blocks, const ConstActivationTile& tile,
                const TileOutput& output) {
  for (int lane = 0; lane < output.num_rows; lane += kLanes) {
    FloatLanes sums[kTokens];
#pragma GCC unroll 16
    for (int t = 0; t < kTokens; ++t) sums[t] = zero_lanes();
    const ActivationBlock* x = tile.blocks;
    const std::uint8_t* outliers = tile.outliers;
    for (std::int64_t b = 0; b < num_blocks; ++b) {
      const Unit& unit = units[b / Unit::kBlocks];
      const int block = static_cast<int>(b % Unit::kBlocks);
      prefetch_block(unit, block);
      CodeLanes codes[8];
      decode(unit, block, lane, codes);
      const auto scales = load_scales(unit, block, lane);
      add_tile_block<Unit, kTokens>(codes, scales, x, sums);
      if (kTokens == 1 ? *outliers != 0 : has_outlier(outliers)) [[unlikely]] {
        add_tile_residuals<Unit, kTokens>(codes, scales, outliers, tile.residuals + b * tile.width, sums);
      }
      x += tile.width;
      outliers += kTokensPerActivationTile;
    }
    store_tile<kTokens>(output, lane, sums);
  }
}

// One group by 16 tokens: 16 sums, and the 8 vectors of a decoded block stay in registers for all of them.
template <class Unit>
struct BlockTile {
  static constexpr int kMaxGroups = 1;
  static constexpr int kMaxTokens = kTokensPerActivationTile;

  template <int kGroups, int kTokens>
  static void run(const MatmulArgs& args, std::int64_t group, std::int32_t first_token, int num_tokens) {
    block_tile<Unit, kTokens>(units_at<Unit>(args, group), args.k / kActivationBlock,
                              activation_tile(args.quantized, args.k, first_token, args.num_tokens),
                              tile_output(args, group, first_token, num_tokens));
  }
};
