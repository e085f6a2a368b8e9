// Matmuls of packed weights in scalar code: the definition of every sum's order and rounding, which the other
// instruction sets match bit for bit.
#include <algorithm>
#include <bit>
#include <cmath>

#include "base/half.h"
#include "kernels/activation.h"
#include "kernels/byte_columns.h"
#include "kernels/nibble_planes.h"
#include "kernels/packed.h"
#include "kernels/ref/kernels.h"
#include "kernels/w8a8.h"

namespace kvasir::kernels::ref {
namespace {

int nibble_of(const PackedNibbles& nibbles, int row, int i) {
  return nibbles[i / 4 % 4][4 * row + i % 4] >> (i < 16 ? 0 : 4) & 0x0f;
}

// The unsigned code of input `i` (0..31) of a block and row `row` of the group.
template <class Unit>
int code_of(const Unit& unit, int block, int row, int i) {
  const int group_of_4 = i / 4, byte = 4 * row + i % 4;
  if constexpr (requires { Unit::kTable; }) {
    return Unit::kTable[nibble_of(unit.nibbles[block], row, i)];
  } else if constexpr (requires { unit.low_bits; }) {
    int code = unit.low_bits[block][group_of_4 / 4][byte] >> 2 * (group_of_4 % 4) & 3;
    if constexpr (requires { unit.third_bits; })
      code |= (unit.third_bits[block][byte] >> group_of_4 & 1) << 2;
    return code;
  } else if constexpr (Unit::kBits == 8) {
    return unit.codes[block][group_of_4][byte];
  } else {
    int code = nibble_of(unit.nibbles[block], row, i);
    if constexpr (Unit::kBits == 5) code |= (unit.high_bits[block][byte] >> group_of_4 & 1) << 4;
    if constexpr (Unit::kBits == 6)
      code |= (unit.high_bits[block][group_of_4 / 4][byte] >> 2 * (group_of_4 % 4) & 3) << 4;
    return code;
  }
}

int code_of(const NibblePlaneUnit& unit, int block, int row, int i) {
  return nibble_of(unit.high.nibbles[block], row, i) * 16 + nibble_of(unit.low.nibbles[block], row, i);
}

// A block of one token's activations.
struct Activations {
  const ActivationBlock& block;
  const OutlierCodes& outliers;

  int code(int i) const { return block.q[i] + (1 << kOutlierShift) * outliers.q[i]; }
};

// sum((code - zero) * activation's code) over inputs [begin, end) of a block. At most 32 * 255 * 16256:
// exact. As a float too, unless there are outlier codes; then it is rounded once.
template <class Unit>
float dot(const Unit& unit, int block, int row, const Activations& x, int begin, int end) {
  constexpr int kZero = Unit::kZeroShift == 0 ? 0 : 1 << Unit::kZeroShift;
  int sum = 0;
  for (int i = begin; i < end; ++i) sum += (code_of(unit, block, row, i) - kZero) * x.code(i);
  return static_cast<float>(sum);
}

// sum + a block's part of one output: one fused multiply-add for the dot and one for the minimum.

template <class Unit>
float add_block(float sum, const Unit& unit, int block, int row, const Activations& x) {
  const float scale = half_to_float(unit.scales[block][row]);
  sum = std::fma(dot(unit, block, row, x, 0, 32), scale * x.block.scale, sum);
  if constexpr (requires { unit.mins; })
    sum = std::fma(half_to_float(unit.mins[block][row]), x.block.scaled_sum, sum);
  return sum;
}

// The products of scales and sub-scales are exact.
template <class SuperUnit>
float add_sub_block(float sum, const SuperUnit& unit, int block, int row, const Activations& x) {
  const float scale = half_to_float(unit.scales[row]) * unit.sub_scales[block][row];
  const float min = half_to_float(unit.min_scales[row]) * unit.sub_mins[block][row];
  sum = std::fma(dot(unit, block, row, x, 0, 32), scale * x.block.scale, sum);
  return std::fma(-min, x.block.scaled_sum, sum);
}

float add_block(float sum, const PackedQ4_K& unit, int block, int row, const Activations& x) {
  return add_sub_block(sum, unit, block, row, x);
}

float add_block(float sum, const PackedQ5_K& unit, int block, int row, const Activations& x) {
  return add_sub_block(sum, unit, block, row, x);
}

// Scales of their own for the first and the last 16 inputs.
template <class Unit>
float add_half(float sum, const Unit& unit, int block, int row, const Activations& x, int half, float scale) {
  return std::fma(dot(unit, block, row, x, 16 * half, 16 * half + 16), scale * x.block.scale, sum);
}

template <class SuperUnit>
float add_sub_halves(float sum, const SuperUnit& unit, int block, int row, const Activations& x) {
  for (int half = 0; half < 2; ++half) {
    const float scale = half_to_float(unit.scales[row]) * unit.sub_scales[block][half][row];
    sum = add_half(sum, unit, block, row, x, half, scale);
  }
  return sum;
}

float add_block(float sum, const PackedQ6_K& unit, int block, int row, const Activations& x) {
  return add_sub_halves(sum, unit, block, row, x);
}

float add_block(float sum, const PackedQ3_K& unit, int block, int row, const Activations& x) {
  return add_sub_halves(sum, unit, block, row, x);
}

float add_block(float sum, const PackedScaledBytes& unit, int block, int row, const Activations& x) {
  for (int half = 0; half < 2; ++half) {
    sum = add_half(sum, unit, block, row, x, half, unit.scales[block][half][row]);
  }
  return sum;
}

// The offset of a half is -128 times the sum of its activations, so that the minimum's sign turns with it.
float add_block(float sum, const PackedQ2_K& unit, int block, int row, const Activations& x) {
  const std::int32_t offsets[] = {x.block.offset - x.block.offset_high, x.block.offset_high};
  sum = add_sub_halves(sum, unit, block, row, x);
  for (int half = 0; half < 2; ++half) {
    const float min = half_to_float(unit.min_scales[row]) * (1.0f / 128) * unit.sub_mins[block][half][row];
    sum = std::fma(min, static_cast<float>(offsets[half]) * x.block.scale, sum);
  }
  return sum;
}

float add_block(float sum, const PackedIQ4_XS& unit, int block, int row, const Activations& x) {
  const float scale = half_to_float(unit.scales[row]) * unit.sub_scales[block][row];
  return std::fma(dot(unit, block, row, x, 0, 32), scale * x.block.scale, sum);
}

float add_block(float sum, const PackedMXFP4& unit, int block, int row, const Activations& x) {
  const auto exponent = static_cast<std::uint32_t>(unit.exponents[block][row]);
  const float scale = 0.5f * std::bit_cast<float>(exponent << 23);
  return std::fma(dot(unit, block, row, x, 0, 32), scale * x.block.scale, sum);
}

float add_block(float sum, const PackedTwoBits& unit, int block, int row, const Activations& x) {
  const float scale = half_to_float(unit.scales[block][row]);
  sum = std::fma(dot(unit, block, row, x, 0, 32), scale * x.block.scale, sum);
  return std::fma(-scale, x.block.scaled_sum, sum);
}

float add_block(float sum, const NibblePlaneUnit& unit, int block, int row, const Activations& x) {
  const float scale = half_to_float(unit.high.scales[block][row]);
  return std::fma(dot(unit, block, row, x, 0, 32), scale * x.block.scale, sum);
}

float weight_of(const PackedF32& column, int row) { return column.rows[row]; }
float weight_of(const PackedF16& column, int row) { return half_to_float(column.rows[row]); }
float weight_of(const PackedBF16& column, int row) { return bf16_to_float(column.rows[row]); }

template <class Unit>
struct BlockSum {
  // Output `row` of `group` for one token: blocks in order, in one float accumulator.
  static float run(const MatmulArgs& args, std::int64_t group, int row, std::int64_t token) {
    const auto units = units_at<Unit>(args, group);
    const std::int64_t column = token % kTokensPerActivationTile;
    const ConstActivationTile x = activation_tile(args.quantized, args.k, token - column, args.num_tokens);
    float sum = 0.0f;
    for (std::int64_t b = 0; b < args.k / kActivationBlock; ++b) {
      const std::int64_t at = b * x.width + column;
      sum = add_block(sum, units[b / Unit::kBlocks], static_cast<int>(b % Unit::kBlocks), row,
                      {x.blocks[at], x.outliers[at]});
    }
    return sum;
  }
};

struct W8a8Sum {
  // Output `row` of `group` for one token: spans in order, the exact dot of all blocks of a span in one fused
  // multiply-add.
  static float run(const MatmulArgs& args, std::int64_t group, int row, std::int64_t token) {
    const auto* first = static_cast<const std::uint8_t*>(args.weights) + group * w8a8_group_bytes(args.k);
    const std::int64_t column = token % kTokensPerActivationTile;
    const ConstActivationTile x = activation_tile(args.quantized, args.k, token - column, args.num_tokens);
    float sum = 0.0f;
    for (std::int64_t s = 0; s < num_spans(args.k); ++s) {
      const std::uint8_t* codes = first + span_offset_bytes(s);
      const std::int64_t begin = s * kBlocksPerSpan * x.width + column;
      const int num_inputs = blocks_of_span(args.k, s) * kActivationBlock;
      int dot = 0;
      for (int i = 0; i < num_inputs; ++i) {
        const std::int64_t at = begin + i / kActivationBlock * x.width;
        const Activations block{x.blocks[at], x.outliers[at]};
        dot += (codes[i / 4 * kGroupOf4Bytes + 4 * row + i % 4] - 128) * block.code(i % kActivationBlock);
      }
      const auto* scales = reinterpret_cast<const float*>(codes + num_inputs / 4 * kGroupOf4Bytes);
      sum = std::fma(static_cast<float>(dot), scales[row] * x.blocks[begin].scale, sum);
    }
    return sum;
  }
};

template <class Column>
struct ColumnSum {
  // Output `row` of `group` for one token: inputs in order, in one float accumulator.
  static float run(const MatmulArgs& args, std::int64_t group, int row, std::int64_t token) {
    const auto* columns = reinterpret_cast<const Column*>(static_cast<const char*>(args.weights) +
                                                          group * column_group_bytes<Column>(args.k));
    const float* x = args.x + token * args.k;
    float sum = 0.0f;
    for (std::int64_t i = 0; i < args.k; ++i) sum = std::fma(weight_of(columns[i], row), x[i], sum);
    return sum;
  }
};

template <class Sum>
void matmul(const MatmulArgs& args) {
  for (std::int64_t token = 0; token < args.num_tokens; ++token) {
    for (std::int64_t row = args.group_begin * kRowsPerGroup;
         row < args.group_end * kRowsPerGroup && row < args.num_rows; ++row) {
      const float sum = Sum::run(args, row / kRowsPerGroup, static_cast<int>(row % kRowsPerGroup), token);
      float& out = args.out[token * args.out_stride + row];
      out = args.accumulate ? out + sum : sum;
    }
  }
}

template <class Unit>
MatmulKernel matmul_of_unit() {
  if constexpr (kIsColumn<Unit>) {
    return matmul<ColumnSum<Unit>>;
  } else {
    return matmul<BlockSum<Unit>>;
  }
}

}  // namespace

void w8a8_matmul(const MatmulArgs& args) { matmul<W8a8Sum>(args); }

namespace {

struct ByteColumnSum {
  static float run(const MatmulArgs& args, std::int64_t group, int row, std::int64_t token) {
    const ByteColumns columns = byte_columns(args, group);
    float chains[kByteChains] = {};
    for (std::int64_t i = 0; i < args.k; ++i) {
      float& chain = chains[i % kByteChains];
      chain = std::fma(static_cast<float>(columns.codes[i * kRowsPerGroup + row]), args.x[token * args.k + i], chain);
    }
    return ((chains[0] + chains[1]) + (chains[2] + chains[3])) * columns.scales[row];
  }
};

}  // namespace

void byte_column_matmul(const MatmulArgs& args) { matmul<ByteColumnSum>(args); }

void nibble_plane_matmul(const MatmulArgs& args) { matmul<BlockSum<NibblePlaneUnit>>(args); }

namespace {

// The greatest estimate + slack and estimate - slack of a group. Infinities and the NaN they make say
// nothing.
void find_argmax_bounds(const BoundArgs& args, std::int64_t group) {
  const std::int64_t i = group - args.group_begin;
  args.upper[i] = args.lower[i] = -INFINITY;
  const std::int64_t num_rows = std::min<std::int64_t>(kRowsPerGroup, args.num_rows - group * kRowsPerGroup);
  for (std::int64_t row = i * kRowsPerGroup; row < i * kRowsPerGroup + num_rows; ++row) {
    const bool is_finite = std::isfinite(args.estimate[row]);
    const float most = is_finite ? args.estimate[row] + args.slack[row] : INFINITY;
    const float least = is_finite ? args.estimate[row] - args.slack[row] : -INFINITY;
    args.upper[i] = std::max(args.upper[i], std::isnan(most) ? INFINITY : most);
    if (least < INFINITY) args.lower[i] = std::max(args.lower[i], least);
  }
}

// Calls visit(units, row of the group, estimate, slack) for every row, then reduces the group.
template <class Visit>
void for_each_row(const BoundArgs& args, const Visit& visit) {
  for (std::int64_t group = args.group_begin; group < args.group_end; ++group) {
    for (int row = 0; row < kRowsPerGroup; ++row) {
      const std::int64_t i = (group - args.group_begin) * kRowsPerGroup + row;
      visit(nibble_plane_units(args.weights, args.low_weights, args.k, group), row, args.estimate[i],
            args.slack[i]);
    }
    find_argmax_bounds(args, group);
  }
}

// Block b of the token.
Activations block_of(const BoundArgs& args, std::int64_t b) {
  const std::int64_t column = args.token % kTokensPerActivationTile;
  const ConstActivationTile x = activation_tile(args.quantized, args.k, args.token - column, args.num_tokens);
  return {x.blocks[b * x.width + column], x.outliers[b * x.width + column]};
}

}  // namespace

void argmax_bound(const BoundArgs& args) {
  const auto& inputs = *static_cast<const BoundInputs*>(args.inputs);
  for_each_row(args, [&](const NibblePlaneUnits& units, int row, float& estimate, float& slack) {
    estimate = slack = 0.0f;
    for (std::int64_t b = 0; b < args.k / kActivationBlock; ++b) {
      const PackedHighPlane& unit = units.high[b / PackedHighPlane::kBlocks];
      const int block = static_cast<int>(b % PackedHighPlane::kBlocks);
      const float scale = half_to_float(unit.scales[block][row]);
      const Activations x = block_of(args, b);
      estimate = std::fma(dot(unit, block, row, x, 0, 32), scale * (16.0f * x.block.scale), estimate);
      estimate = std::fma(scale, kMiddleOfLow * x.block.scaled_sum, estimate);
      slack = std::fma(std::fabs(scale) * unit.low_norms[block][row], inputs.norms()[b], slack);
    }
  });
}

void argmax_refine(const BoundArgs& args) {
  const auto& inputs = *static_cast<const BoundInputs*>(args.inputs);
  for_each_row(args, [&](const NibblePlaneUnits& units, int row, float& estimate, float& slack) {
    for (int i = 0; i < inputs.num_exact; ++i) {
      const auto& [b, group_of_4, norm_drop] = inputs.exact[i];
      const NibblePlaneUnit unit = units[b / NibblePlaneUnit::kBlocks];
      const int block = b % NibblePlaneUnit::kBlocks;
      const float scale = half_to_float(unit.high.scales[block][row]);
      const Activations x = block_of(args, b);
      int twice = 0;  // the sum of (2 low - 15) x
      for (int j = 4 * group_of_4; j < 4 * group_of_4 + 4; ++j) {
        twice += (2 * nibble_of(unit.low.nibbles[block], row, j) - 15) * x.code(j);
      }
      estimate = std::fma(static_cast<float>(twice), scale * (0.5f * x.block.scale), estimate);
      slack = std::fma(std::fabs(scale) * unit.high.low_norms[block][row], -norm_drop, slack);
    }
  });
}

#include "kernels/generic/matmul/matmul_of-inl.h"

}  // namespace kvasir::kernels::ref
