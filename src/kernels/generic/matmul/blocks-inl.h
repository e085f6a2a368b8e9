// Matmul of the block formats: integer dots of 32 inputs, scaled and added in float. Included inside an ISA's
// namespace and target region, after tiles-inl.h.
//
// The sum of one output runs over the blocks of k in order, in one float accumulator: see ref/matmul.cc,
// whose bits this gives. Tiles of different numbers of tokens do the same operations, so their results are
// equal. Outlier codes come first: their dot, shifted, is where the sum of the codes starts.

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

// Bits 0 and 1 of the codes.
template <int kUp>
KVASIR_FORCE_INLINE void load_low_bits(const PackedLowBits& low_bits, int lane, CodeLanes* codes) {
  constexpr int kMask = 3 << kUp;
#pragma GCC unroll 2
  for (int half = 0; half < 2; ++half) {
    const CodeLanes plane = load_codes(low_bits[half] + 4 * lane);
    codes[4 * half] = and_bits<kUp, kMask>(plane);
    codes[4 * half + 1] = and_bits<kUp - 2, kMask>(plane);
    codes[4 * half + 2] = and_bits<kUp - 4, kMask>(plane);
    codes[4 * half + 3] = and_bits<kUp - 6, kMask>(plane);
  }
}

template <int kUp>
KVASIR_FORCE_INLINE void add_third_bits(const PackedFifthBits& third_bits, int lane, CodeLanes* codes) {
  constexpr int kMask = 4 << kUp;
  const CodeLanes plane = load_codes(third_bits + 4 * lane);
  codes[0] = or_bits<kUp + 2, kMask>(codes[0], plane);
  codes[1] = or_bits<kUp + 1, kMask>(codes[1], plane);
  codes[2] = or_bits<kUp, kMask>(codes[2], plane);
  codes[3] = or_bits<kUp - 1, kMask>(codes[3], plane);
  codes[4] = or_bits<kUp - 2, kMask>(codes[4], plane);
  codes[5] = or_bits<kUp - 3, kMask>(codes[5], plane);
  codes[6] = or_bits<kUp - 4, kMask>(codes[6], plane);
  codes[7] = or_bits<kUp - 5, kMask>(codes[7], plane);
}

KVASIR_FORCE_INLINE void decode(const NibblePlaneUnit& unit, int block, int lane, CodeLanes* codes) {
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
  if constexpr (requires { Unit::kTable; }) {
    load_nibbles<0>(unit.nibbles[block], lane, codes);
    const CodeTable table = load_byte_code_table(Unit::kTable);
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) codes[j] = look_up(table, codes[j]);
  } else if constexpr (requires { unit.low_bits; }) {
    load_low_bits<kUp>(unit.low_bits[block], lane, codes);
    if constexpr (requires { unit.third_bits; }) add_third_bits<kUp>(unit.third_bits[block], lane, codes);
  } else if constexpr (Unit::kBits == 8) {
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
// As SymmetricHalves without a zero, less a minimum: value = scale * code - 128 min_of_128.
struct AffineHalves {
  FloatLanes low, high, low_min_of_128, high_min_of_128;
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

KVASIR_FORCE_INLINE Symmetric load_scales(const NibblePlaneUnit& unit, int block, int lane) {
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
  const FloatLanes min = mul(load_half_lanes(unit.min_scales + lane),
                             load_int_lanes(unit.sub_mins[block] + lane));
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

KVASIR_FORCE_INLINE SymmetricHalves load_scales(const PackedQ3_K& unit, int block, int lane) {
  const FloatLanes scale = scale_of_codes<PackedQ3_K>(load_half_lanes(unit.scales + lane));
  return {mul(scale, load_int_lanes(unit.sub_scales[block][0] + lane)),
          mul(scale, load_int_lanes(unit.sub_scales[block][1] + lane))};
}

KVASIR_FORCE_INLINE AffineHalves load_scales(const PackedQ2_K& unit, int block, int lane) {
  const FloatLanes scale = load_half_lanes(unit.scales + lane);
  const FloatLanes min = mul(load_half_lanes(unit.min_scales + lane), broadcast_lanes(1.0f / 128));
  return {mul(scale, load_int_lanes(unit.sub_scales[block][0] + lane)),
          mul(scale, load_int_lanes(unit.sub_scales[block][1] + lane)),
          mul(min, load_int_lanes(unit.sub_mins[block][0] + lane)),
          mul(min, load_int_lanes(unit.sub_mins[block][1] + lane))};
}

KVASIR_FORCE_INLINE Symmetric load_scales(const PackedIQ4_XS& unit, int block, int lane) {
  return {mul(load_half_lanes(unit.scales + lane), load_int_lanes(unit.sub_scales[block] + lane))};
}

KVASIR_FORCE_INLINE Symmetric load_scales(const PackedMXFP4& unit, int block, int lane) {
  return {mul(load_exponent_lanes(unit.exponents[block] + lane), broadcast_lanes(0.5f))};
}

KVASIR_FORCE_INLINE Affine load_scales(const PackedTwoBits& unit, int block, int lane) {
  const FloatLanes scale = load_half_lanes(unit.scales[block] + lane);
  return {scale, negate(scale)};
}

KVASIR_FORCE_INLINE SymmetricHalves load_scales(const PackedScaledBytes& unit, int block, int lane) {
  return {load_lanes(unit.scales[block][0] + lane), load_lanes(unit.scales[block][1] + lane)};
}

template <class Unit>
using ScalesOf = decltype(load_scales(std::declval<const Unit&>(), 0, 0));

// Integer sums of a block: one for each scale a row has there.
template <class Unit>
inline constexpr int kSums = std::is_same_v<ScalesOf<Unit>, SymmetricHalves> ||
                                     std::is_same_v<ScalesOf<Unit>, AffineHalves>
                                 ? 2
                                 : 1;

// 128 times the scaled sums of a block's halves, with a minus, as one float each.
struct HalfOffsets {
  float low, high;
};
KVASIR_FORCE_INLINE HalfOffsets scaled_offsets(const ActivationBlock& x) {
  return {static_cast<float>(x.offset - x.offset_high) * x.scale,
          static_cast<float>(x.offset_high) * x.scale};
}

// --- Asking for a block ahead of its use ---

template <class Unit>
inline constexpr int kPrefetchBytesOf = Unit::kBlocks > 2 || std::is_same_v<Unit, PackedQ5_0>
                                            ? kFarPrefetchBytes
                                            : kNearPrefetchBytes;

// A block's share of its unit, or what lies kAhead beyond it.
template <class Unit, int kAhead = kPrefetchBytesOf<Unit>>
KVASIR_FORCE_INLINE void prefetch_block(const Unit& unit, int block) {
  if constexpr (std::is_same_v<Unit, NibblePlaneUnit>) {
    prefetch_block<PackedHighPlane, kAhead>(unit.high, block);
    prefetch_block<PackedLowPlane, kAhead>(unit.low, block);
  } else {
    constexpr int kBlockBytes = sizeof(Unit) / Unit::kBlocks;
    prefetch_ahead<kBlockBytes, kAhead>(reinterpret_cast<const char*>(&unit) + block * kBlockBytes);
  }
}

// --- Adding a block to the sums of kTokens tokens, whose blocks of activations are neighbours ---

template <int kTokens>
KVASIR_FORCE_INLINE void add_dots(const IntLanes (*dots)[kTokens], const Symmetric& weights,
                                  const ActivationBlock* x, FloatLanes* sums) {
#pragma GCC unroll 16
  for (int t = 0; t < kTokens; ++t) {
    sums[t] = fma(to_float(dots[0][t]), mul(weights.scale, broadcast_lanes(x[t].scale)), sums[t]);
  }
}

template <int kTokens>
KVASIR_FORCE_INLINE void add_dots(const IntLanes (*dots)[kTokens], const Affine& weights,
                                  const ActivationBlock* x, FloatLanes* sums) {
#pragma GCC unroll 16
  for (int t = 0; t < kTokens; ++t) {
    sums[t] = fma(to_float(dots[0][t]), mul(weights.scale, broadcast_lanes(x[t].scale)), sums[t]);
    sums[t] = fma(weights.min, broadcast_lanes(x[t].scaled_sum), sums[t]);
  }
}

template <int kTokens>
KVASIR_FORCE_INLINE void add_dots(const IntLanes (*dots)[kTokens], const SymmetricHalves& weights,
                                  const ActivationBlock* x, FloatLanes* sums) {
#pragma GCC unroll 16
  for (int t = 0; t < kTokens; ++t) {
    const FloatLanes scale = broadcast_lanes(x[t].scale);
    sums[t] = fma(to_float(dots[0][t]), mul(weights.low, scale), sums[t]);
    sums[t] = fma(to_float(dots[1][t]), mul(weights.high, scale), sums[t]);
  }
}

template <int kTokens>
KVASIR_FORCE_INLINE void add_dots(const IntLanes (*dots)[kTokens], const AffineHalves& weights,
                                  const ActivationBlock* x, FloatLanes* sums) {
  add_dots<kTokens>(dots, SymmetricHalves{weights.low, weights.high}, x, sums);
#pragma GCC unroll 16
  for (int t = 0; t < kTokens; ++t) {
    const HalfOffsets offsets = scaled_offsets(x[t]);
    sums[t] = fma(weights.low_min_of_128, broadcast_lanes(offsets.low), sums[t]);
    sums[t] = fma(weights.high_min_of_128, broadcast_lanes(offsets.high), sums[t]);
  }
}

// --- Tiles: one group of 16 rows by kTokens tokens ---

// The integer sums of kTokens tokens' blocks.
template <class Unit, int kTokens>
using BlockDots = IntLanes[kSums<Unit>][kTokens];

template <class Unit, int kTokens>
KVASIR_FORCE_INLINE void start_dots(const ActivationBlock* x, BlockDots<Unit, kTokens>& dots) {
#pragma GCC unroll 16
  for (int t = 0; t < kTokens; ++t) {
    if constexpr (kSums<Unit> == 1) {
      dots[0][t] = start_sum<Unit::kBits, Unit::kZeroShift>(x[t]);
    } else {
      dots[0][t] = start_low_sum<Unit::kBits, Unit::kZeroShift>(x[t]);
      dots[1][t] = start_high_sum<Unit::kBits, Unit::kZeroShift>(x[t]);
    }
  }
}

// As start_dots, with the products of the outlier codes in `groups_of_4`: those that any of the tokens has.
// The others' zeros change no bit of their sums.
template <class Unit, int kTokens>
KVASIR_FORCE_INLINE void start_outlier_dots(const CodeLanes* codes, const ActivationBlock* x,
                                            const OutlierCodes* outliers, unsigned groups_of_4,
                                            BlockDots<Unit, kTokens>& dots) {
  BlockDots<Unit, kTokens> starts;
#pragma GCC unroll 2
  for (int i = 0; i < kSums<Unit>; ++i) {
#pragma GCC unroll 16
    for (int t = 0; t < kTokens; ++t) dots[i][t] = zero_int_lanes();
  }
#pragma GCC unroll 8
  for (int j = 0; j < kGroupsOf4PerBlock; ++j) {  // unrolled, so that the weights' codes stay in registers
    if ((groups_of_4 >> j & 1) == 0) continue;
    constexpr int kGroupsOf4OfSum = kGroupsOf4PerBlock / kSums<Unit>;
#pragma GCC unroll 16
    for (int t = 0; t < kTokens; ++t) {
      IntLanes& dot = dots[j / kGroupsOf4OfSum][t];
      dot = add_group_of_4<Unit::kBits>(dot, codes[j], outliers[t].q + 4 * j);
    }
  }
  start_dots<Unit, kTokens>(x, starts);
#pragma GCC unroll 2
  for (int i = 0; i < kSums<Unit>; ++i) {
#pragma GCC unroll 16
    for (int t = 0; t < kTokens; ++t) dots[i][t] = add_outliers(starts[i][t], dots[i][t]);
  }
}

template <class Unit, int kTokens>
KVASIR_FORCE_INLINE void add_code_dots(const CodeLanes* codes, const ActivationBlock* x,
                                       BlockDots<Unit, kTokens>& dots) {
  if constexpr (kSums<Unit> == 1) {
    dot_blocks<Unit::kBits, kTokens>(codes, x, dots[0]);
  } else {
    dot_half_blocks<Unit::kBits, kTokens>(codes, x, dots[0], dots[1]);
  }
}

// The most tokens that a tile of num_tokens can take at a time without leaving some over.
constexpr int tokens_at_a_time(int num_tokens, int at_most) {
  while (num_tokens % at_most != 0) --at_most;
  return at_most;
}

// Adds one block of every token of the tile.
template <class Unit, int kTokens, class Scales>
KVASIR_FORCE_INLINE void add_tile_block(const CodeLanes* codes, const Scales& scales,
                                        const ActivationBlock* x, FloatLanes* sums) {
  constexpr int kStep = tokens_at_a_time(kTokens, 2);  // to hide the latency of the dot instruction
#pragma GCC unroll 16
  for (int t = 0; t < kTokens; t += kStep) {
    BlockDots<Unit, kStep> dots;
    start_dots<Unit, kStep>(x + t, dots);
    add_code_dots<Unit, kStep>(codes, x + t, dots);
    add_dots<kStep>(dots, scales, x + t, sums + t);
  }
}

// The flags of a block's 16 tokens, as two words of eight.
struct OutlierFlags {
  std::uint64_t __attribute__((may_alias)) words[2];
};

template <int kTokens>
KVASIR_FORCE_INLINE bool has_outliers(const std::uint8_t* outlier_groups) {
  if constexpr (kTokens == 1) return *outlier_groups != 0;
  const auto& flags = *reinterpret_cast<const OutlierFlags*>(outlier_groups);
  return (flags.words[0] | flags.words[1]) != 0;
}

// The groups of 4 where one of kTokens tokens has outlier codes.
template <int kTokens>
KVASIR_FORCE_INLINE unsigned groups_of_4_of_any(const std::uint8_t* outlier_groups) {
  unsigned groups_of_4 = 0;
#pragma GCC unroll 16
  for (int t = 0; t < kTokens; ++t) groups_of_4 |= outlier_groups[t];
  return groups_of_4;
}

// As add_tile_block, for a block where some token has outlier codes.
template <class Unit, int kTokens, class Scales>
KVASIR_FORCE_INLINE void add_outlier_tile_block(const CodeLanes* codes, const Scales& scales,
                                                const ActivationBlock* x, const OutlierCodes* outliers,
                                                const std::uint8_t* outlier_groups, FloatLanes* sums) {
  constexpr int kStep = tokens_at_a_time(kTokens, kLanes == kPackedRows ? 4 / kSums<Unit> : 2);
  asm("" : "+r"(x));  // or GCC 12 finds that add_tile_block reads the same addresses, and spills them all
#pragma GCC unroll 16
  for (int t = 0; t < kTokens; t += kStep) {
    BlockDots<Unit, kStep> dots;
    const unsigned groups_of_4 = groups_of_4_of_any<kStep>(outlier_groups + t);
    if (groups_of_4 != 0) {
      start_outlier_dots<Unit, kStep>(codes, x + t, outliers + t, groups_of_4, dots);
    } else {
      start_dots<Unit, kStep>(x + t, dots);
    }
    add_code_dots<Unit, kStep>(codes, x + t, dots);
    add_dots<kStep>(dots, scales, x + t, sums + t);
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
    const std::uint8_t* outlier_groups = tile.outlier_groups;
    for (std::int64_t b = 0; b < num_blocks; ++b) {
      const Unit& unit = units[b / Unit::kBlocks];
      const int block = static_cast<int>(b % Unit::kBlocks);
      prefetch_block(unit, block);
      CodeLanes codes[8];
      decode(unit, block, lane, codes);
      const auto scales = load_scales(unit, block, lane);
      if (has_outliers<kTokens>(outlier_groups)) {
        add_outlier_tile_block<Unit, kTokens>(codes, scales, x, tile.outliers + b * tile.width,
                                              outlier_groups, sums);
      } else {
        add_tile_block<Unit, kTokens>(codes, scales, x, sums);
      }
      x += tile.width;
      outlier_groups += kTokensPerActivationTile;
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
