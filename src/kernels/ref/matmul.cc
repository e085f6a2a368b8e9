// Matmuls of packed weights in scalar code: the definition of every sum's order and rounding, which the other
// instruction sets match bit for bit.
#include <cmath>

#include "base/half.h"
#include "kernels/activation.h"
#include "kernels/matmul_kernels.h"
#include "kernels/packed.h"
#include "kernels/wide.h"

namespace kvasir::kernels::ref {
namespace {

// The unsigned code of input `i` (0..31) of a block and row `row` of the group.
template <class Unit>
int code_of(const Unit& unit, int block, int row, int i) {
  const int quad = i / 4, byte = 4 * row + i % 4;
  if constexpr (Unit::kBits == 8) {
    return unit.codes[block][quad][byte];
  } else {
    int code = unit.nibbles[block][quad % 4][byte] >> (quad < 4 ? 0 : 4) & 0x0f;
    if constexpr (Unit::kBits == 5) code |= (unit.high_bits[block][byte] >> quad & 1) << 4;
    if constexpr (Unit::kBits == 6)
      code |= (unit.high_bits[block][quad / 4][byte] >> 2 * (quad % 4) & 3) << 4;
    return code;
  }
}

// sum((code - zero) * q) over inputs [begin, end) of a block. At most 32 * 255 * 127: exact, also as a float.
template <class Unit>
float dot(const Unit& unit, int block, int row, const ActivationBlock& x, int begin, int end) {
  constexpr int kZero = Unit::kZeroShift == 0 ? 0 : 1 << Unit::kZeroShift;
  int sum = 0;
  for (int i = begin; i < end; ++i) sum += (code_of(unit, block, row, i) - kZero) * x.q[i];
  return static_cast<float>(sum);
}

// sum + a block's part of one output: one fused multiply-add for the dot and one for the minimum.

template <class Unit>
float add_block(float sum, const Unit& unit, int block, int row, const ActivationBlock& x) {
  const float scale = half_to_float(unit.scales[block][row]);
  sum = std::fma(dot(unit, block, row, x, 0, 32), scale * x.scale, sum);
  if constexpr (requires { unit.mins; })
    sum = std::fma(half_to_float(unit.mins[block][row]), x.scaled_sum, sum);
  return sum;
}

// The products of scales and sub-scales are exact.
template <class SuperUnit>
float add_sub_block(float sum, const SuperUnit& unit, int block, int row, const ActivationBlock& x) {
  const float scale = half_to_float(unit.scales[row]) * unit.sub_scales[block][row];
  const float min = half_to_float(unit.min_scales[row]) * unit.sub_mins[block][row];
  sum = std::fma(dot(unit, block, row, x, 0, 32), scale * x.scale, sum);
  return std::fma(-min, x.scaled_sum, sum);
}

float add_block(float sum, const PackedQ4_K& unit, int block, int row, const ActivationBlock& x) {
  return add_sub_block(sum, unit, block, row, x);
}

float add_block(float sum, const PackedQ5_K& unit, int block, int row, const ActivationBlock& x) {
  return add_sub_block(sum, unit, block, row, x);
}

float add_block(float sum, const PackedQ6_K& unit, int block, int row, const ActivationBlock& x) {
  for (int half = 0; half < 2; ++half) {
    const float scale = half_to_float(unit.scales[row]) * unit.sub_scales[block][half][row];
    sum = std::fma(dot(unit, block, row, x, 16 * half, 16 * half + 16), scale * x.scale, sum);
  }
  return sum;
}

float weight_of(const PackedF32& column, int row) { return column.rows[row]; }
float weight_of(const PackedF16& column, int row) { return half_to_float(column.rows[row]); }
float weight_of(const PackedBF16& column, int row) { return bf16_to_float(column.rows[row]); }

template <class Unit>
struct BlockSum {
  // Output `row` of `group` for one token: blocks in order, in one float accumulator; an outlier's residual
  // right after it.
  static float run(const MatmulArgs& args, std::int64_t group, int row, std::int64_t token) {
    const Unit* units = static_cast<const Unit*>(args.weights) + group * units_of<Unit>(args.k);
    const std::int64_t column = token % kTokensPerActivationTile;
    const ConstActivationTile x = activation_tile(args.quantized, args.k, token - column, args.num_tokens);
    const auto add = [&](float sum, const ActivationBlock* blocks, std::int64_t b) {
      const int block = static_cast<int>(b % Unit::kBlocks);
      return add_block(sum, units[b / Unit::kBlocks], block, row, blocks[b * x.width + column]);
    };
    const std::int64_t num_blocks = args.k / kActivationBlock;
    float sum = 0.0f;
    for (std::int64_t b = 0; b < num_blocks; ++b) {
      sum = add(sum, x.blocks, b);
      if (x.is_outlier(b, column)) sum = add(sum, x.residuals, b);
    }
    return sum;
  }
};

struct WideSum {
  // sum + one span of a row: the exact dot of all its blocks in one fused multiply-add.
  static float add(float sum, const std::uint8_t* span, int num_blocks, int row, const ActivationBlock* x,
                   std::int64_t width) {
    int dot = 0;
    for (int i = 0; i < num_blocks * kActivationBlock; ++i) {
      const int code = span[i / 4 * kPackedQuadBytes + 4 * row + i % 4];
      dot += (code - 128) * x[i / kActivationBlock * width].q[i % kActivationBlock];
    }
    const auto* scales =
        reinterpret_cast<const float*>(span + num_blocks * static_cast<std::int64_t>(sizeof(PackedBytes)));
    return std::fma(static_cast<float>(dot), scales[row] * x[0].scale, sum);
  }

  // Output `row` of `group` for one token: spans in order, an outlier's residuals right after it.
  static float run(const MatmulArgs& args, std::int64_t group, int row, std::int64_t token) {
    const auto* first = static_cast<const std::uint8_t*>(args.weights) + group * wide_group_bytes(args.k);
    const std::int64_t column = token % kTokensPerActivationTile;
    const ConstActivationTile x = activation_tile(args.quantized, args.k, token - column, args.num_tokens);
    float sum = 0.0f;
    for (std::int64_t s = 0; s < num_spans(args.k); ++s) {
      const std::uint8_t* span = first + span_offset_bytes(s);
      const std::int64_t at = s * kBlocksPerSpan * x.width + column;
      sum = add(sum, span, blocks_of_span(args.k, s), row, x.blocks + at, x.width);
      if (x.is_outlier(s * kBlocksPerSpan, column))
        sum = add(sum, span, blocks_of_span(args.k, s), row, x.residuals + at, x.width);
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

}  // namespace

void wide_matmul(const MatmulArgs& args) { matmul<WideSum>(args); }

MatmulKernel matmul_of(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return matmul<ColumnSum<PackedF32>>;
    case DType::kF16:
      return matmul<ColumnSum<PackedF16>>;
    case DType::kBF16:
      return matmul<ColumnSum<PackedBF16>>;
    case DType::kQ8_0:
      return matmul<BlockSum<PackedQ8_0>>;
    case DType::kQ4_0:
      return matmul<BlockSum<PackedQ4_0>>;
    case DType::kQ4_1:
      return matmul<BlockSum<PackedQ4_1>>;
    case DType::kQ5_0:
      return matmul<BlockSum<PackedQ5_0>>;
    case DType::kQ5_1:
      return matmul<BlockSum<PackedQ5_1>>;
    case DType::kQ4_K:
      return matmul<BlockSum<PackedQ4_K>>;
    case DType::kQ5_K:
      return matmul<BlockSum<PackedQ5_K>>;
    case DType::kQ6_K:
      return matmul<BlockSum<PackedQ6_K>>;
  }
  return nullptr;
}

}  // namespace kvasir::kernels::ref
