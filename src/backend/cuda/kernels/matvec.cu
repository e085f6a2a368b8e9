// Matmul for a few tokens. A block of threads has one group of 16 rows. Its warps take blocks of inputs in turn: exact
// integer sums by mma_s8, 16 rows by 8 tokens. A thread for each output adds them in order, with the fused
// multiply-adds of the CPU (kernels/generic/matmul/blocks-inl.h), while the next inputs are on their way.
#include "backend/cuda/kernels/activations.h"
#include "backend/cuda/kernels/codes.h"
#include "backend/cuda/kernels/launchers.h"
#include "quant/formats.h"

namespace kvasir::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * simt::kWarpSize;
constexpr int kBlocksPerWarp = 4;  // of a stage
constexpr int kBlocksPerStage = kWarps * kBlocksPerWarp;
constexpr int kRows = kernels::kPackedRows;

// An integer sum as a float, and the scale that it meets.
struct alignas(8) Product {
  float dot, scale;
};

// The warps' input to the sums of one stage. All arrays go [block][sum] first.
template <class Unit>
struct Stage {
  Product* products;  // [tokens][rows]
  float* minimum;     // [rows]
  float* token_sums;  // [tokens]

  static constexpr std::int64_t kTerms = kBlocksPerStage * kSums<Unit>;
  static constexpr std::int64_t bytes(int tokens) {
    return kTerms * (static_cast<std::int64_t>(sizeof(Product)) * kRows * tokens +
                     (kHasMinimum<Unit> ? 4 * (kRows + tokens) : 0));
  }
  KVASIR_DEVICE static Stage at(int buffer, int tokens) {
    const std::int64_t base = buffer * bytes(tokens),
                       end = base + kTerms * kRows * tokens * std::int64_t{sizeof(Product)};
    const std::int64_t num_minima = kHasMinimum<Unit> ? kTerms : 0;
    return {simt::shared<Product>(base, kTerms * kRows * tokens),
            simt::shared<float>(end, num_minima * kRows),
            simt::shared<float>(end + 4 * num_minima * kRows, num_minima * tokens)};
  }
};

// Writes the products of block b, the i-th of its stage.
template <class Unit>
KVASIR_DEVICE void multiply_block(const RawCodes& raw, const Unit* units, const TileView& x, std::int64_t b,
                                  int i, const Stage<Unit>& stage) {
  const int g = simt::lane_index() / 4, j = simt::lane_index() % 4, tokens = static_cast<int>(x.width);
  const Unit* unit = units + b / Unit::kBlocks;
  const int block = static_cast<int>(b % Unit::kBlocks);
  std::uint32_t a[4], codes[2];
  decode<Unit>(raw, j, a);
  std::int32_t dots[kSums<Unit>][4] = {};
  const simt::Words2 flags = simt::load8(x.outlier_groups + b * kTokensPerActivationTile);
  if ((flags.x | flags.y) != 0) {
    load_inputs(x.outliers[b * x.width + g].q, j, g < tokens, codes);
    add_products<Unit>(a, codes, dots);
    KVASIR_UNROLL
    for (int s = 0; s < kSums<Unit>; ++s) {
      for (int d = 0; d < 4; ++d) dots[s][d] *= 1 << kOutlierShift;
    }
  }
  load_inputs(x.blocks[b * x.width + g].q, j, g < tokens, codes);
  add_products<Unit>(a, codes, dots);
  const RowScales rows[2] = {row_scales(unit, block, 2 * g), row_scales(unit, block, 2 * g + 1)};
  KVASIR_UNROLL
  for (int s = 0; s < kSums<Unit>; ++s) {
    const int term = i * kSums<Unit> + s;
    KVASIR_UNROLL
    for (int d = 0; d < 4; ++d) {
      const int token = 2 * j + d % 2, row = 2 * g + d / 2;
      if (token >= tokens) continue;
      const ActivationBlock* of_token = x.blocks + b * x.width + token;
      const std::int32_t dot = dots[s][d] + start_of_dot<Unit>(of_token, s);
      const float scale = rows[d / 2].scale[s] * simt::load(&of_token->scale);
      simt::store(stage.products + (term * tokens + token) * kRows + row,
                  Product{static_cast<float>(dot), scale});
    }
    if constexpr (kHasMinimum<Unit>) {
      if (j < 2) simt::store(stage.minimum + term * kRows + 2 * g + j, rows[j].minimum[s]);
      if (j == 0 && g < tokens) {
        simt::store(stage.token_sums + term * tokens + g,
                    token_terms<Unit>(x.blocks + b * x.width + g).sums[s]);
      }
    }
  }
}

// Adds the first num_blocks blocks of a stage.
template <class Unit>
KVASIR_DEVICE float add_stage(float sum, const Stage<Unit>& stage, int num_blocks, int tokens, int token,
                              int row) {
  for (int i = 0; i < num_blocks; ++i) {
    KVASIR_UNROLL
    for (int s = 0; s < kSums<Unit>; ++s) {
      const Product product = simt::load(stage.products + ((i * kSums<Unit> + s) * tokens + token) * kRows +
                                         row);
      sum = simt::fma_rn(product.dot, product.scale, sum);
    }
    if constexpr (kHasMinimum<Unit>) {
      KVASIR_UNROLL
      for (int s = 0; s < kSums<Unit>; ++s) {
        const int term = i * kSums<Unit> + s;
        sum = simt::fma_rn(simt::load(stage.minimum + term * kRows + row),
                           simt::load(stage.token_sums + term * tokens + token), sum);
      }
    }
  }
  return sum;
}

template <class Unit>
KVASIR_DEVICE void load_stage(const Unit* units, std::int64_t first, std::int64_t num_blocks,
                              RawCodes (&raw)[kBlocksPerWarp]) {
  const int g = simt::lane_index() / 4, j = simt::lane_index() % 4;
  KVASIR_UNROLL
  for (int i = 0; i < kBlocksPerWarp; ++i) {
    const std::int64_t b = first + i;
    if (b < num_blocks)
      raw[i] = load_codes(units + b / Unit::kBlocks, static_cast<int>(b % Unit::kBlocks), g, j);
  }
}

template <class Unit>
KVASIR_KERNEL(kThreads)
void matvec_kernel(MatmulArgs args) {
  const std::int64_t group = simt::block_index().x, num_blocks = args.k / kActivationBlock;
  const Unit* units = static_cast<const Unit*>(args.weights) + group * kernels::units_of<Unit>(args.k);
  const TileView x = tile_view(args.quantized, args.k, 0, args.num_tokens);
  const int tokens = args.num_tokens, token = simt::thread_index() / kRows,
            row = simt::thread_index() % kRows;
  const int first_of_warp = simt::warp_index() * kBlocksPerWarp;
  RawCodes raw[kBlocksPerWarp];
  load_stage(units, first_of_warp, num_blocks, raw);
  float sum = 0.0f;
  int buffer = 0;
  for (std::int64_t first = 0; first < num_blocks; first += kBlocksPerStage, buffer ^= 1) {
    const Stage<Unit> stage = Stage<Unit>::at(buffer, tokens);
    KVASIR_UNROLL
    for (int i = 0; i < kBlocksPerWarp; ++i) {
      const std::int64_t b = first + first_of_warp + i;
      if (b < num_blocks) multiply_block(raw[i], units, x, b, first_of_warp + i, stage);
    }
    load_stage(units, first + kBlocksPerStage + first_of_warp, num_blocks, raw);
    simt::sync_block();
    const std::int64_t left = num_blocks - first;
    if (token < tokens) {
      sum = add_stage(sum, stage, static_cast<int>(left < kBlocksPerStage ? left : kBlocksPerStage), tokens,
                      token, row);
    }
  }
  if (token >= tokens || group * kRows + row >= args.num_rows) return;
  float* out = args.out + token * args.out_stride + group * kRows + row;
  simt::store(out, args.accumulate ? simt::load(out) + sum : sum);
}

template <class Format>
bool launch_matvec(simt::Device& device, const MatmulArgs& args) {
  using Unit = kernels::UnitOf<Format>;
  if constexpr (kernels::kIsColumn<Unit>) {
    return false;
  } else {
    const auto groups = static_cast<std::uint32_t>((args.num_rows + kRows - 1) / kRows);
    simt::launch<matvec_kernel<Unit>>(device, {groups}, kThreads, 2 * Stage<Unit>::bytes(args.num_tokens),
                                      args);
    return true;
  }
}

}  // namespace

bool matvec(simt::Device& device, DType dtype, const MatmulArgs& args) {
  if (args.w8a8) {
    matvec_w8a8(device, args);
    return true;
  }
  switch (dtype) {
#define KVASIR_FORMAT(id, Format) \
  case DType::id:                 \
    return launch_matvec<quant::Format>(device, args);
#include "quant/formats.def"
#undef KVASIR_FORMAT
  }
  return false;
}

}  // namespace kvasir::cuda
