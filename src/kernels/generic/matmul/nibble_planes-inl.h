// The matmul of nibble planes (nibble_planes.h), and bounds on logits from its high plane. Included inside an
// ISA's namespace and target region, after block_matmul.

void nibble_plane_matmul(const MatmulArgs& args) { block_matmul<NibblePlaneUnit>(args); }

// One token's inputs, and what is known of them.
struct BoundedToken {
  ConstActivationTile tile;
  std::int64_t column;
  const BoundInputs& inputs;

  explicit BoundedToken(const BoundArgs& args)
      : column(args.token % kTokensPerActivationTile), inputs(*static_cast<const BoundInputs*>(args.inputs)) {
    tile = activation_tile(args.quantized, args.k, args.token - column, args.num_tokens);
  }
  const ActivationBlock* block(std::int64_t b) const { return tile.blocks + b * tile.width + column; }
  const OutlierCodes* outliers(std::int64_t b) const { return tile.outliers + b * tile.width + column; }
  unsigned outlier_groups(std::int64_t b) const {
    return tile.outlier_groups[b * kTokensPerActivationTile + column];
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
  const unsigned groups_of_4 = x.outlier_groups(b);
  if (groups_of_4 != 0) {
    start_outlier_dots<PackedHighPlane, 1>(codes, block, x.outliers(b), groups_of_4, dots);
  } else {
    start_dots<PackedHighPlane, 1>(block, dots);
  }
  add_code_dots<PackedHighPlane, 1>(codes, block, dots);
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
    CodeLanes codes[kGroupsOf4PerBlock];
    decode(unit, block, lane, codes);
    const FloatLanes scale = load_half_lanes(unit.scales[block] + lane);
    add_estimate(codes, scale, x, b, estimate);
    const FloatLanes norm = mul(magnitude(scale), load_int_lanes(unit.low_norms[block] + lane));
    slack = fma(norm, broadcast_lanes(x.inputs.norms()[b]), slack);
  }
  store_lanes(out.estimate, estimate, kLanes);
  store_lanes(out.slack, slack, kLanes);
}

// Adds what the estimate of a group of 4 of block b lacks: (low - 7.5) x.
KVASIR_FORCE_INLINE void add_low_group_of_4(CodeLanes codes, FloatLanes scale, const BoundedToken& x,
                                            std::int64_t b, int group_of_4, FloatLanes& estimate) {
  const std::int8_t *q = x.block(b)->q + 4 * group_of_4, *outliers = x.outliers(b)->q + 4 * group_of_4;
  int sum = 0;
  for (int i = 0; i < 4; ++i) sum += q[i] + (outliers[i] << kOutlierShift);
  const IntLanes dot = add_outliers(
      add_group_of_4<PackedHighPlane::kBits>(zero_int_lanes(), codes, q),
      add_group_of_4<PackedHighPlane::kBits>(zero_int_lanes(), codes, outliers));
  const FloatLanes difference = add(to_float(dot), broadcast_lanes(-kMiddleOfLow * static_cast<float>(sum)));
  estimate = fma(difference, mul(scale, broadcast_lanes(x.block(b)->scale)), estimate);
}

KVASIR_FORCE_INLINE void refine_rows(const NibblePlaneUnits& units, const BoundedToken& x, int lane,
                                     const BoundedRows& out) {
  FloatLanes estimate = load_lanes(out.estimate), slack = load_lanes(out.slack);
  for (int i = 0; i < x.inputs.num_exact; ++i) {
    const auto& [b, group_of_4, norm_drop] = x.inputs.exact[i];
    const NibblePlaneUnit unit = units[b / NibblePlaneUnit::kBlocks];
    const int block = b % NibblePlaneUnit::kBlocks;
    const CodeLanes both = load_codes(unit.low.nibbles[block][group_of_4 % 4] + 4 * lane);
    const CodeLanes codes = group_of_4 < 4 ? low_nibbles<0>(both) : high_nibbles<0>(both);
    const FloatLanes scale = load_half_lanes(unit.high.scales[block] + lane);
    add_low_group_of_4(codes, scale, x, b, group_of_4, estimate);
    const FloatLanes norm = mul(magnitude(scale), load_int_lanes(unit.high.low_norms[block] + lane));
    slack = fma(norm, broadcast_lanes(-norm_drop), slack);
  }
  store_lanes(out.estimate, estimate, kLanes);
  store_lanes(out.slack, slack, kLanes);
}

// The greatest estimate + slack and estimate - slack of a group. Infinities and the NaN they make say
// nothing.
KVASIR_FORCE_INLINE void find_argmax_bounds(const BoundArgs& args, std::int64_t group) {
  const std::int64_t i = group - args.group_begin;
  const auto rows = first_lanes(
      static_cast<int>(smaller(args.num_rows - group * kRowsPerGroup, kRowsPerGroup)));
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
    find_argmax_bounds(args, group);
  }
}

void argmax_bound(const BoundArgs& args) {
  const BoundedToken x(args);
  for_each_group(args, [&](std::int64_t group, int lane, const BoundedRows& out) {
    const auto* units = static_cast<const PackedHighPlane*>(args.weights) +
                        group * units_of<NibblePlaneUnit>(args.k);
    bound_rows(units, args.k / kActivationBlock, x, lane, out);
  });
}

void argmax_refine(const BoundArgs& args) {
  const BoundedToken x(args);
  for_each_group(args, [&](std::int64_t group, int lane, const BoundedRows& out) {
    refine_rows(nibble_plane_units(args.weights, args.low_weights, args.k, group), x, lane, out);
  });
}
