// The split format (split.h): its matmul, and bounds on logits from its high plane. Included inside an ISA's
// namespace and target region, after block_matmul.

void split_matmul(const MatmulArgs& args) { block_matmul<SplitUnit>(args); }

// One token's inputs, and what is known of them.
struct BoundedToken {
  ConstActivationTile tile;
  std::int64_t column;
  const SplitInputs& inputs;

  explicit BoundedToken(const BoundArgs& args)
      : column(args.token % kTokensPerActivationTile), inputs(*static_cast<const SplitInputs*>(args.inputs)) {
    tile = activation_tile(args.quantized, args.k, args.token - column, args.num_tokens);
  }
  const ActivationBlock* block(std::int64_t b) const { return tile.blocks + b * tile.width + column; }
  const CoarseCodes* coarse(std::int64_t b) const { return tile.coarse + b * tile.width + column; }
  unsigned coarse_quads(std::int64_t b) const {
    return tile.coarse_quads[b * kTokensPerActivationTile + column];
  }
};

// The outputs of kLanes rows.
struct BoundedRows {
  float* estimate;
  float* slack;
};

// Adds the high nibbles of block b, with 7.5 for what they lack.
KVASIR_FORCE_INLINE void add_estimate(const CodeLanes* codes, FloatLanes scale, const BoundedToken& x,
                                      std::int64_t b, FloatLanes& estimate) {
  constexpr float kNibbleWeight = 16 >> code_shift<PackedHighPlane>();
  const ActivationBlock* block = x.block(b);
  BlockDots<PackedHighPlane, 1> dots;
  const unsigned quads = x.coarse_quads(b);
  if (quads != 0) {
    start_coarse_dots<PackedHighPlane, 1>(codes, block, x.coarse(b), quads, dots);
  } else {
    start_dots<PackedHighPlane, 1>(block, dots);
  }
  add_fine_dots<PackedHighPlane, 1>(codes, block, dots);
  estimate = fma(to_float(dots[0][0]), mul(scale, broadcast_lanes(kNibbleWeight * block->scale)), estimate);
  estimate = fma(scale, broadcast_lanes(kMiddleOfLow * block->scaled_sum), estimate);
}

KVASIR_FORCE_INLINE void bound_rows(const PackedHighPlane* units, std::int64_t num_blocks,
                                    const BoundedToken& x, int lane, const BoundedRows& out) {
  FloatLanes estimate = zero_lanes(), slack = zero_lanes();
  for (std::int64_t b = 0; b < num_blocks; ++b) {
    const PackedHighPlane& unit = units[b / PackedHighPlane::kBlocks];
    const int block = static_cast<int>(b % PackedHighPlane::kBlocks);
    prefetch_block(unit, block);
    CodeLanes codes[kPackedQuads];
    decode(unit, block, lane, codes);
    const FloatLanes scale = load_half_lanes(unit.scales[block] + lane);
    add_estimate(codes, scale, x, b, estimate);
    const FloatLanes norm = mul(magnitude(scale), load_int_lanes(unit.low_norms[block] + lane));
    slack = fma(norm, broadcast_lanes(x.inputs.norms()[b]), slack);
  }
  store_lanes(out.estimate, estimate, kLanes);
  store_lanes(out.slack, slack, kLanes);
}

// Adds what the estimate of a quad of block b lacks: (low - 7.5) x.
KVASIR_FORCE_INLINE void add_low_quad(CodeLanes codes, FloatLanes scale, const BoundedToken& x,
                                      std::int64_t b, int quad, FloatLanes& estimate) {
  const std::int8_t *fine = x.block(b)->q + 4 * quad, *coarse = x.coarse(b)->q + 4 * quad;
  int sum = 0;
  for (int i = 0; i < 4; ++i) sum += fine[i] + (coarse[i] << kCoarseShift);
  const IntLanes dot = add_coarse(add_quad<PackedHighPlane::kBits>(zero_int_lanes(), codes, fine),
                                  add_quad<PackedHighPlane::kBits>(zero_int_lanes(), codes, coarse));
  const FloatLanes difference = add(to_float(dot), broadcast_lanes(-kMiddleOfLow * static_cast<float>(sum)));
  estimate = fma(difference, mul(scale, broadcast_lanes(x.block(b)->scale)), estimate);
}

KVASIR_FORCE_INLINE void refine_rows(const SplitUnits& units, const BoundedToken& x, int lane,
                                     const BoundedRows& out) {
  FloatLanes estimate = load_lanes(out.estimate), slack = load_lanes(out.slack);
  for (int i = 0; i < x.inputs.num_exact; ++i) {
    const auto& [b, quad, norm_drop] = x.inputs.exact[i];
    const SplitUnit unit = units[b / SplitUnit::kBlocks];
    const int block = b % SplitUnit::kBlocks;
    const CodeLanes both = load_codes(unit.low.nibbles[block][quad % 4] + 4 * lane);
    const CodeLanes codes = quad < 4 ? low_nibbles<0>(both) : high_nibbles<0>(both);
    const FloatLanes scale = load_half_lanes(unit.high.scales[block] + lane);
    add_low_quad(codes, scale, x, b, quad, estimate);
    const FloatLanes norm = mul(magnitude(scale), load_int_lanes(unit.high.low_norms[block] + lane));
    slack = fma(norm, broadcast_lanes(-norm_drop), slack);
  }
  store_lanes(out.estimate, estimate, kLanes);
  store_lanes(out.slack, slack, kLanes);
}

// The greatest estimate + slack and estimate - slack of a group. Infinities and the NaN they make say
// nothing.
KVASIR_FORCE_INLINE void find_greatest_bounds(const BoundArgs& args, std::int64_t group) {
  const std::int64_t i = group - args.group_begin;
  const auto rows =
      first_lanes(static_cast<int>(smaller(args.num_rows - group * kRowsPerGroup, kRowsPerGroup)));
  const F32x16 estimate = load(args.estimate + i * kRowsPerGroup),
               slack = load(args.slack + i * kRowsPerGroup);
  const F32x16 infinity = broadcast(__builtin_inff()), lowest = broadcast(-__builtin_inff());
  const Mask16 is_finite = less(abs(estimate), infinity);
  const F32x16 most = select(is_finite, add(estimate, slack), infinity);
  const F32x16 least = select(is_finite, sub(estimate, slack), lowest);
  args.upper[i] = reduce_max(select(rows, select(equal(most, most), most, infinity), lowest));
  args.lower[i] = reduce_max(select(rows, select(less(least, infinity), least, lowest), lowest));
}

// Calls visit(group, lane, outputs) for each run of kLanes rows, then reduces the group.
template <class Visit>
KVASIR_FORCE_INLINE void for_each_group(const BoundArgs& args, const Visit& visit) {
  for (std::int64_t group = args.group_begin; group < args.group_end; ++group) {
    const std::int64_t first = (group - args.group_begin) * kRowsPerGroup;
    for (int lane = 0; lane < kRowsPerGroup; lane += kLanes) {
      visit(group, lane, BoundedRows{args.estimate + first + lane, args.slack + first + lane});
    }
    find_greatest_bounds(args, group);
  }
}

void split_bound(const BoundArgs& args) {
  const BoundedToken x(args);
  for_each_group(args, [&](std::int64_t group, int lane, const BoundedRows& out) {
    const auto* units =
        static_cast<const PackedHighPlane*>(args.weights) + group * units_of<SplitUnit>(args.k);
    bound_rows(units, args.k / kActivationBlock, x, lane, out);
  });
}

void split_refine(const BoundArgs& args) {
  const BoundedToken x(args);
  for_each_group(args, [&](std::int64_t group, int lane, const BoundedRows& out) {
    refine_rows(split_units(args.weights, args.low_weights, args.k, group), x, lane, out);
  });
}
