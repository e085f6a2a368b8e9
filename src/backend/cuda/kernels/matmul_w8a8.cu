// The fast mode's matmul for many tokens: 128 rows by 64 tokens a block of threads. A warp has two groups of 16 rows. It
// keeps the integer sums of a span of 256 inputs and the float sums in registers. An output takes eight mma_s8 and one
// fused multiply-add a span, in the CPU's order. The activations of the next blocks come to shared memory meanwhile.
#include "backend/cuda/kernels/activations.h"
#include "backend/cuda/kernels/launchers.h"
#include "backend/cuda/kernels/w8a8_spans.h"

namespace kvasir::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * simt::kWarpSize;
constexpr int kGroups = 2;  // of a warp
constexpr int kRows = kernels::kPackedRows;
constexpr int kTokens = 64;
constexpr int kTiles = kTokens / kTokensPerActivationTile;
constexpr int kTokensPerMma = 8;
constexpr int kMmas = kTokens / kTokensPerMma;
constexpr int kBlocksPerStage = 4;
constexpr int kPiecesPerBlock = sizeof(ActivationBlock) / 16;
constexpr std::int64_t kFlagsAt = std::int64_t{kBlocksPerStage} * kTokens * sizeof(ActivationBlock);
constexpr std::int64_t kStageBytes = kFlagsAt + kBlocksPerStage * kTokens;

// Where this warp is.
struct WarpPlace {
  std::int64_t first_token;
  int num_tokens;  // that exist
  std::int64_t num_blocks;
  std::int64_t groups[kGroups];  // the first one twice where it is the last
  int num_groups;                // that exist
};

KVASIR_DEVICE WarpPlace place_of_warp(const MatmulArgs& args) {
  const std::int64_t first = (std::int64_t{simt::block_index().x} * kWarps + simt::warp_index()) * kGroups,
                     all = (args.num_rows + kRows - 1) / kRows;
  const std::int64_t first_token = std::int64_t{simt::block_index().y} * kTokens,
                     left = args.num_tokens - first_token;
  return {first_token,
          static_cast<int>(left < kTokens ? left : kTokens),
          args.k / kActivationBlock,
          {first, first + 1 < all ? first + 1 : first},
          first >= all      ? 0
          : first + 1 < all ? 2
                            : 1};
}

// Activations of a stage, [block][token], and their outlier flags.
struct StageView {
  ActivationBlock* blocks;
  std::uint8_t* flags;
};
KVASIR_DEVICE StageView stage_at(int buffer) {
  const std::int64_t at = buffer * kStageBytes;
  return {simt::shared<ActivationBlock>(at, kBlocksPerStage * kTokens),
          simt::shared<std::uint8_t>(at + kFlagsAt, kBlocksPerStage * kTokens)};
}

// Asks for the activations of the blocks from `first` on.
KVASIR_DEVICE void copy_span_stage(const MatmulArgs& args, const WarpPlace& at, std::int64_t first,
                                   const StageView& stage) {
  for (int i = simt::thread_index(); i < kBlocksPerStage * kTokens * kPiecesPerBlock; i += kThreads) {
    const int step = i / (kTokens * kPiecesPerBlock), token = i / kPiecesPerBlock % kTokens,
              piece = i % kPiecesPerBlock;
    if (first + step >= at.num_blocks || token >= at.num_tokens) continue;
    const int column = token % kTokensPerActivationTile;
    const TileView x = tile_view(args.quantized, args.k, at.first_token + token - column, args.num_tokens);
    const ActivationBlock* from = x.blocks + (first + step) * x.width + column;
    simt::async_copy16(stage.blocks[step * kTokens + token].q + 16 * piece, from->q + 16 * piece);
  }
  for (int i = simt::thread_index(); i < kBlocksPerStage * kTiles; i += kThreads) {
    const int step = i / kTiles, token = i % kTiles * kTokensPerActivationTile;
    if (first + step >= at.num_blocks || token >= at.num_tokens) continue;
    const TileView x = tile_view(args.quantized, args.k, at.first_token + token, args.num_tokens);
    simt::async_copy16(stage.flags + step * kTokens + token,
                       x.outlier_groups + (first + step) * kTokensPerActivationTile);
  }
  simt::async_commit();
}

KVASIR_DEVICE void load_block(const MatmulArgs& args, const WarpPlace& at, std::int64_t b,
                              RawCodes (&raw)[kGroups]) {
  if (b >= at.num_blocks) return;
  const int g = simt::lane_index() / 4, j = simt::lane_index() % 4;
  KVASIR_UNROLL
  for (int i = 0; i < kGroups; ++i) {
    const W8a8Span* span = span_at(args.weights, args.k, at.groups[i], b / kBlocksPerSpan);
    raw[i] = load_codes(span, static_cast<int>(b % kBlocksPerSpan), g, j);
  }
}

// Adds the outlier codes' products of eight tokens, from `token` on, times 2^kOutlierShift.
KVASIR_DEVICE void add_span_outliers(const MatmulArgs& args, const WarpPlace& at, int token, std::int64_t b,
                                     const std::uint32_t (&a)[kGroups][4],
                                     std::int32_t (&dots)[kGroups][kMmas][4], int m) {
  const int g = simt::lane_index() / 4, j = simt::lane_index() % 4, column = token % kTokensPerActivationTile;
  const TileView x = tile_view(args.quantized, args.k, at.first_token + token - column, args.num_tokens);
  std::uint32_t codes[2];
  load_inputs(x.outliers[b * x.width + column + g].q, j, token + g < at.num_tokens, codes);
  KVASIR_UNROLL
  for (int i = 0; i < kGroups; ++i) {
    std::int32_t products[4] = {};
    simt::mma_s8(products, a[i], codes);
    for (int d = 0; d < 4; ++d) dots[i][m][d] += products[d] * (1 << kOutlierShift);
  }
}

// Adds block b, the step-th of its stage, to the integer sums.
KVASIR_DEVICE void add_span_block(const MatmulArgs& args, const WarpPlace& at, const RawCodes (&raw)[kGroups],
                                  std::int64_t b, const StageView& stage, int step,
                                  std::int32_t (&dots)[kGroups][kMmas][4]) {
  const int g = simt::lane_index() / 4, j = simt::lane_index() % 4;
  std::uint32_t a[kGroups][4];
  KVASIR_UNROLL
  for (int i = 0; i < kGroups; ++i) decode<W8a8Span>(raw[i], j, a[i]);
  KVASIR_UNROLL
  for (int m = 0; m < kMmas; ++m) {
    const int token = m * kTokensPerMma;
    if (token >= at.num_tokens) break;
    const simt::Words2 flags = simt::load8(stage.flags + step * kTokens + token);
    if ((flags.x | flags.y) != 0) add_span_outliers(args, at, token, b, a, dots, m);
    std::uint32_t codes[2];
    load_inputs(stage.blocks[step * kTokens + token + g].q, j, token + g < at.num_tokens, codes);
    KVASIR_UNROLL
    for (int i = 0; i < kGroups; ++i) simt::mma_s8(dots[i][m], a[i], codes);
  }
}

// Adds a span, of which the blocks x are the last, to the float sums, and begins the next.
KVASIR_DEVICE void add_span(const MatmulArgs& args, const WarpPlace& at, std::int64_t s,
                            const ActivationBlock* x, std::int32_t (&dots)[kGroups][kMmas][4],
                            float (&sums)[kGroups][kMmas][4]) {
  const int g = simt::lane_index() / 4, j = simt::lane_index() % 4,
            num_blocks = kernels::blocks_of_span(args.k, s);
  KVASIR_UNROLL
  for (int i = 0; i < kGroups; ++i) {
    const float* scales = span_scales(span_at(args.weights, args.k, at.groups[i], s), num_blocks);
    const float of_rows[2] = {simt::load(scales + 2 * g), simt::load(scales + 2 * g + 1)};
    KVASIR_UNROLL
    for (int m = 0; m < kMmas; ++m) {
      KVASIR_UNROLL
      for (int d = 0; d < 4; ++d) {
        const int token = m * kTokensPerMma + 2 * j + d % 2;
        if (token < at.num_tokens) {
          const float scale = of_rows[d / 2] * simt::load(&x[token].scale);
          sums[i][m][d] = simt::fma_rn(static_cast<float>(dots[i][m][d]), scale, sums[i][m][d]);
        }
        dots[i][m][d] = 0;
      }
    }
  }
}

KVASIR_DEVICE void store_span_sums(const MatmulArgs& args, const WarpPlace& at,
                                   const float (&sums)[kGroups][kMmas][4]) {
  const int g = simt::lane_index() / 4, j = simt::lane_index() % 4;
  KVASIR_UNROLL
  for (int i = 0; i < kGroups; ++i) {
    if (i >= at.num_groups) return;
    KVASIR_UNROLL
    for (int m = 0; m < kMmas; ++m) {
      KVASIR_UNROLL
      for (int d = 0; d < 4; ++d) {
        const int token = m * kTokensPerMma + 2 * j + d % 2;
        const std::int64_t row = at.groups[i] * kRows + 2 * g + d / 2;
        if (token >= at.num_tokens || row >= args.num_rows) continue;
        float* out = args.out + (at.first_token + token) * args.out_stride + row;
        simt::store(out, args.accumulate ? simt::load(out) + sums[i][m][d] : sums[i][m][d]);
      }
    }
  }
}

KVASIR_KERNEL(kThreads)
void matmul_w8a8_kernel(MatmulArgs args) {
  const WarpPlace at = place_of_warp(args);
  const bool has_rows = at.num_groups > 0;
  float sums[kGroups][kMmas][4] = {};
  std::int32_t dots[kGroups][kMmas][4] = {};
  RawCodes raw[kGroups] = {}, next[kGroups] = {};
  if (has_rows) load_block(args, at, 0, next);
  int buffer = 0;
  copy_span_stage(args, at, 0, stage_at(buffer));
  for (std::int64_t first = 0; first < at.num_blocks; first += kBlocksPerStage, buffer ^= 1) {
    const StageView stage = stage_at(buffer);
    copy_span_stage(args, at, first + kBlocksPerStage, stage_at(buffer ^ 1));
    simt::async_wait<1>();
    simt::sync_block();
    for (int step = 0; step < kBlocksPerStage && has_rows && first + step < at.num_blocks; ++step) {
      const std::int64_t b = first + step;
      KVASIR_UNROLL
      for (int i = 0; i < kGroups; ++i) raw[i] = next[i];
      load_block(args, at, b + 1, next);
      add_span_block(args, at, raw, b, stage, step, dots);
      if ((b + 1) % kBlocksPerSpan != 0 && b + 1 != at.num_blocks) continue;
      add_span(args, at, b / kBlocksPerSpan, stage.blocks + step * kTokens, dots, sums);
    }
    simt::sync_block();
  }
  simt::async_wait<0>();
  if (has_rows) store_span_sums(args, at, sums);
}

constexpr std::uint32_t cut(std::int64_t n, std::int64_t size) {
  return static_cast<std::uint32_t>((n + size - 1) / size);
}

}  // namespace

void matmul_w8a8(simt::Device& device, const MatmulArgs& args) {
  const simt::Dim grid = {cut(args.num_rows, kWarps * kGroups * kRows), cut(args.num_tokens, kTokens)};
  simt::launch<matmul_w8a8_kernel>(device, grid, kThreads, 2 * kStageBytes, args);
}

}  // namespace kvasir::cuda
