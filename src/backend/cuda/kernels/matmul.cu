// Matmul for many tokens: four groups of 16 rows by 64 tokens a block of threads. A warp has one group, and keeps its 64
// sums a lane in registers: one block of inputs is an mma_s8 for eight tokens, then a fused multiply-add for each sum, in
// the CPU's order. The activations of the next blocks come to shared memory meanwhile.
#include "backend/cuda/kernels/activations.h"
#include "backend/cuda/kernels/codes.h"
#include "backend/cuda/kernels/launchers.h"
#include "quant/formats.h"

namespace kvasir::cuda {
namespace {

constexpr int kWarps = 4;  // and groups
constexpr int kThreads = kWarps * simt::kWarpSize;
constexpr int kTokens = 64;
constexpr int kTokensPerMma = 8;
constexpr int kMmas = kTokens / kTokensPerMma;
constexpr int kBlocksPerStage = 4;
constexpr int kRows = kernels::kPackedRows;
constexpr int kPiecesPerBlock = sizeof(ActivationBlock) / 16;
constexpr std::int64_t kStageBytes = std::int64_t{kBlocksPerStage} * kTokens * sizeof(ActivationBlock);

// Where this block of threads is.
struct Place {
  std::int64_t first_token;
  int num_tokens;  // that exist
  std::int64_t num_blocks;
};

KVASIR_DEVICE ActivationBlock* block_in_stage(int buffer, int step) {
  return simt::shared<ActivationBlock>(buffer * kStageBytes, kBlocksPerStage * kTokens) + step * kTokens;
}

// Asks for the activations of the blocks from `first` on.
KVASIR_DEVICE void copy_stage(const MatmulArgs& args, const Place& at, std::int64_t first, int buffer) {
  for (int i = simt::thread_index(); i < kBlocksPerStage * kTokens * kPiecesPerBlock; i += kThreads) {
    const int step = i / (kTokens * kPiecesPerBlock), token = i / kPiecesPerBlock % kTokens,
              piece = i % kPiecesPerBlock;
    if (first + step >= at.num_blocks || token >= at.num_tokens) continue;
    const int column = token % kTokensPerActivationTile;
    const TileView x = tile_view(args.quantized, args.k, at.first_token + token - column, args.num_tokens);
    const ActivationBlock* from = x.blocks + (first + step) * x.width + column;
    simt::async_copy16(block_in_stage(buffer, step)[token].q + 16 * piece, from->q + 16 * piece);
  }
  simt::async_commit();
}

// Adds the outlier codes' products of eight tokens, from `token` on, times 2^kOutlierShift.
template <class Unit>
KVASIR_DEVICE void add_outliers(const MatmulArgs& args, const Place& at, int token, std::int64_t b,
                                const std::uint32_t (&a)[4], std::int32_t (&dots)[kSums<Unit>][4]) {
  const int g = simt::lane_index() / 4, j = simt::lane_index() % 4, column = token % kTokensPerActivationTile;
  const TileView x = tile_view(args.quantized, args.k, at.first_token + token - column, args.num_tokens);
  const simt::Words2 flags = simt::load8(x.outlier_groups + b * kTokensPerActivationTile + column);
  if ((flags.x | flags.y) == 0) return;
  std::uint32_t codes[2];
  load_inputs(x.outliers[b * x.width + column + g].q, j, token + g < at.num_tokens, codes);
  add_products<Unit>(a, codes, dots);
  KVASIR_UNROLL
  for (int s = 0; s < kSums<Unit>; ++s) {
    for (int d = 0; d < 4; ++d) dots[s][d] *= 1 << kOutlierShift;
  }
}

// Adds a block of inputs to the sums of two rows by two tokens.
template <class Unit>
KVASIR_DEVICE void add_to_sums(const RowScales (&rows)[2], const ActivationBlock* x, int token,
                               int num_tokens, const std::int32_t (&dots)[kSums<Unit>][4], float (&sums)[4]) {
  KVASIR_UNROLL
  for (int t = 0; t < 2; ++t) {
    if (token + t >= num_tokens) return;
    const TokenTerms terms = token_terms<Unit>(x + token + t);
    KVASIR_UNROLL
    for (int r = 0; r < 2; ++r) {
      float& sum = sums[2 * r + t];
      KVASIR_UNROLL
      for (int s = 0; s < kSums<Unit>; ++s) {
        const std::int32_t dot = dots[s][2 * r + t] + start_of_dot<Unit>(x + token + t, s);
        sum = simt::fma_rn(static_cast<float>(dot), rows[r].scale[s] * terms.scale, sum);
      }
      if constexpr (kHasMinimum<Unit>) {
        for (int s = 0; s < kSums<Unit>; ++s) sum = simt::fma_rn(rows[r].minimum[s], terms.sums[s], sum);
      }
    }
  }
}

template <class Unit>
KVASIR_DEVICE void add_block(const MatmulArgs& args, const Place& at, const Unit* units, std::int64_t b,
                             const ActivationBlock* x, float (&sums)[kMmas][4]) {
  const int g = simt::lane_index() / 4, j = simt::lane_index() % 4;
  const Unit* unit = units + b / Unit::kBlocks;
  const int block = static_cast<int>(b % Unit::kBlocks);
  std::uint32_t a[4];
  decode<Unit>(load_codes(unit, block, g, j), j, a);
  const RowScales rows[2] = {row_scales(unit, block, 2 * g), row_scales(unit, block, 2 * g + 1)};
  KVASIR_UNROLL
  for (int m = 0; m < kMmas; ++m) {
    const int token = m * kTokensPerMma;
    if (token >= at.num_tokens) break;
    std::int32_t dots[kSums<Unit>][4] = {};
    add_outliers<Unit>(args, at, token, b, a, dots);
    std::uint32_t codes[2];
    load_inputs(x[token + g].q, j, token + g < at.num_tokens, codes);
    add_products<Unit>(a, codes, dots);
    add_to_sums<Unit>(rows, x, token + 2 * j, at.num_tokens, dots, sums[m]);
  }
}

KVASIR_DEVICE void store_sums(const MatmulArgs& args, const Place& at, std::int64_t first_row,
                              const float (&sums)[kMmas][4]) {
  const int g = simt::lane_index() / 4, j = simt::lane_index() % 4;
  KVASIR_UNROLL
  for (int m = 0; m < kMmas; ++m) {
    KVASIR_UNROLL
    for (int d = 0; d < 4; ++d) {
      const int token = m * kTokensPerMma + 2 * j + d % 2;
      const std::int64_t row = first_row + 2 * g + d / 2;
      if (token >= at.num_tokens || row >= args.num_rows) continue;
      float* out = args.out + (at.first_token + token) * args.out_stride + row;
      simt::store(out, args.accumulate ? simt::load(out) + sums[m][d] : sums[m][d]);
    }
  }
}

template <class Unit>
KVASIR_KERNEL(kThreads)
void matmul_kernel(MatmulArgs args) {
  const std::int64_t group = std::int64_t{simt::block_index().x} * kWarps + simt::warp_index();
  const std::int64_t first_token = std::int64_t{simt::block_index().y} * kTokens,
                     left = args.num_tokens - first_token;
  const Place at = {first_token, static_cast<int>(left < kTokens ? left : kTokens),
                    args.k / kActivationBlock};
  const Unit* units = static_cast<const Unit*>(args.weights) + group * kernels::units_of<Unit>(args.k);
  const bool has_rows = group * kRows < args.num_rows;
  float sums[kMmas][4] = {};
  int buffer = 0;
  copy_stage(args, at, 0, buffer);
  for (std::int64_t first = 0; first < at.num_blocks; first += kBlocksPerStage, buffer ^= 1) {
    copy_stage(args, at, first + kBlocksPerStage, buffer ^ 1);
    simt::async_wait<1>();
    simt::sync_block();
    for (int step = 0; step < kBlocksPerStage && has_rows && first + step < at.num_blocks; ++step) {
      add_block(args, at, units, first + step, block_in_stage(buffer, step), sums);
    }
    simt::sync_block();
  }
  simt::async_wait<0>();
  if (has_rows) store_sums(args, at, group * kRows, sums);
}

// Weights of 16 and 32 bits meet floats: one fused multiply-add for each input, in order.
constexpr int kColumnTokens = 8;  // 16 rows by so many tokens a block of threads

KVASIR_DEVICE float weight_of(const kernels::PackedF32* column, int row) {
  return simt::load(&column->rows[row]);
}
KVASIR_DEVICE float weight_of(const kernels::PackedF16* column, int row) {
  return simt::half_to_float(simt::load(&column->rows[row]));
}
KVASIR_DEVICE float weight_of(const kernels::PackedBF16* column, int row) {
  return simt::float_of_bits(std::uint32_t{simt::load(&column->rows[row])} << 16);
}

template <class Column>
KVASIR_KERNEL(kThreads)
void column_matmul_kernel(MatmulArgs args) {
  const std::int64_t group = simt::block_index().x;
  const int row = simt::thread_index() % kRows;
  const std::int64_t token = std::int64_t{simt::block_index().y} * kColumnTokens +
                             simt::thread_index() / kRows;
  if (token >= args.num_tokens || group * kRows + row >= args.num_rows) return;
  const auto* columns = reinterpret_cast<const Column*>(static_cast<const char*>(args.weights) +
                                                        group * kernels::column_group_bytes<Column>(args.k));
  const float* x = args.x + token * args.k;
  float sum = 0.0f;
  for (std::int64_t i = 0; i < args.k; ++i)
    sum = simt::fma_rn(weight_of(columns + i, row), simt::load(x + i), sum);
  float* out = args.out + token * args.out_stride + group * kRows + row;
  simt::store(out, args.accumulate ? simt::load(out) + sum : sum);
}

constexpr std::uint32_t cut(std::int64_t n, std::int64_t size) {
  return static_cast<std::uint32_t>((n + size - 1) / size);
}

template <class Format>
void launch_matmul(simt::Device& device, const MatmulArgs& args) {
  using Unit = kernels::UnitOf<Format>;
  if constexpr (kernels::kIsColumn<Unit>) {
    const simt::Dim grid = {cut(args.num_rows, kRows), cut(args.num_tokens, kColumnTokens)};
    simt::launch<column_matmul_kernel<Unit>>(device, grid, kThreads, 0, args);
  } else {
    const simt::Dim grid = {cut(args.num_rows, kWarps * kRows), cut(args.num_tokens, kTokens)};
    simt::launch<matmul_kernel<Unit>>(device, grid, kThreads, 2 * kStageBytes, args);
  }
}

}  // namespace

void matmul(simt::Device& device, DType dtype, const MatmulArgs& args) {
  if (args.w8a8) return matmul_w8a8(device, args);
  switch (dtype) {
#define KVASIR_FORMAT(id, Format) \
  case DType::id:                 \
    return launch_matmul<quant::Format>(device, args);
#include "quant/formats.def"
#undef KVASIR_FORMAT
  }
}

}  // namespace kvasir::cuda
