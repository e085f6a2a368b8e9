// The split format (split.h): its matmul, and bounds on logits from its high plane. Included inside an ISA's
// namespace and target region, after block_matmul.

void split_matmul(const MatmulArgs& args) { block_matmul<SplitUnit>(args); }

// Adds a block's high nibbles, with 7.5 for what they lack.
KVASIR_FORCE_INLINE void add_estimate(const CodeLanes* codes, FloatLanes scale, const ActivationBlock& x,
                                      FloatLanes& estimate) {
  constexpr float kNibbleWeight = 16 >> code_shift<PackedHighPlane>();
  IntLanes dot[1];
  dot_blocks<PackedHighPlane::kBits, PackedHighPlane::kZeroShift, 1>(codes, &x, dot);
  estimate = fma(to_float(dot[0]), mul(scale, broadcast_lanes(kNibbleWeight * x.scale)), estimate);
  estimate = fma(scale, broadcast_lanes(kMiddleOfLow * x.scaled_sum), estimate);
}

// One token's inputs, and what is known of them.
struct BoundedToken {
  ConstActivationTile tile;
  std::int64_t column;
  const SplitInputs& inputs;

  explicit BoundedToken(const BoundArgs& args)
      : column(args.token % kTokensPerActivationTile), inputs(*static_cast<const SplitInputs*>(args.inputs)) {
    tile = activation_tile(args.quantized, args.k, args.token - column, args.num_tokens);
  }
  const ActivationBlock& block(std::int64_t b) const { return tile.blocks[b * tile.width + column]; }
  const ActivationBlock& residual(std::int64_t b) const { return tile.residuals[b * tile.width + column]; }
};

// The outputs of kLanes rows.
struct BoundedRows {
  float* estimate;
  float* slack;
};

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
    add_estimate(codes, scale, x.block(b), estimate);
    if (x.tile.is_outlier(b, x.column)) add_estimate(codes, scale, x.residual(b), estimate);
    const FloatLanes norm = mul(magnitude(scale), load_int_lanes(unit.low_norms[block] + lane));
    slack = fma(norm, broadcast_lanes(x.inputs.norms()[b]), slack);
  }
  store_lanes(out.estimate, estimate, kLanes);
  store_lanes(out.slack, slack, kLanes);
}

// Adds what the estimate of a quad lacks: (low - 7.5) x.
KVASIR_FORCE_INLINE void add_low_quad(CodeLanes codes, FloatLanes scale, const ActivationBlock& x, int quad,
                                      FloatLanes& estimate) {
  const std::int8_t* q = x.q + 4 * quad;
  const FloatLanes dot = to_float(dot_quad(codes, q));
  const auto sum = static_cast<float>(q[0] + q[1] + q[2] + q[3]);
  const FloatLanes difference = add(dot, broadcast_lanes(-kMiddleOfLow * sum));
  estimate = fma(difference, mul(scale, broadcast_lanes(x.scale)), estimate);
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
    add_low_quad(codes, scale, x.block(b), quad, estimate);
    if (x.tile.is_outlier(b, x.column)) add_low_quad(codes, scale, x.residual(b), quad, estimate);
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
  const F32x16 most = add(estimate, slack), least = sub(estimate, slack);
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
