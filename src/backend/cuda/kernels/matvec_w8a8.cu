// The fast mode's matmul for a few tokens. A block of threads has one group of 16 rows, and its warps take spans of 256
// inputs in turn: one exact integer sum for each output by a chain of mma_s8. A thread for each output adds the spans'
// sums in order, one fused multiply-add each (kernels/generic/matmul/w8a8-inl.h). The next spans come meanwhile.
#include "backend/cuda/kernels/activations.h"
#include "backend/cuda/kernels/launchers.h"
#include "backend/cuda/kernels/w8a8_spans.h"

namespace kvasir::cuda {
namespace {

constexpr int kWarps = 4;  // and spans of a stage
constexpr int kThreads = kWarps * simt::kWarpSize;
constexpr int kRows = kernels::kPackedRows;

// A span's integer sum as a float, and the scale that it meets.
struct alignas(8) SpanProduct {
  float dot, scale;
};

constexpr std::int64_t stage_products(int tokens) { return std::int64_t{kWarps} * tokens * kRows; }

// [warp][token][row]
KVASIR_DEVICE SpanProduct* products_of(int buffer, int tokens) {
  const std::int64_t count = stage_products(tokens);
  return simt::shared<SpanProduct>(buffer * count * static_cast<std::int64_t>(sizeof(SpanProduct)), count);
}

KVASIR_DEVICE void load_span(const MatmulArgs& args, std::int64_t group, std::int64_t s,
                             RawCodes (&raw)[kBlocksPerSpan]) {
  if (s >= kernels::num_spans(args.k)) return;
  const int g = simt::lane_index() / 4, j = simt::lane_index() % 4,
            num_blocks = kernels::blocks_of_span(args.k, s);
  const W8a8Span* span = span_at(args.weights, args.k, group, s);
  KVASIR_UNROLL
  for (int b = 0; b < kBlocksPerSpan; ++b) {
    if (b < num_blocks) raw[b] = load_codes(span, b, g, j);
  }
}

// Bit b where some token has outlier codes in block first + b.
KVASIR_DEVICE std::uint32_t outlier_blocks(const TileView& x, std::int64_t first, int num_blocks) {
  const int lane = simt::lane_index();
  simt::Words2 flags = {};
  if (lane < num_blocks) flags = simt::load8(x.outlier_groups + (first + lane) * kTokensPerActivationTile);
  return simt::ballot((flags.x | flags.y) != 0);
}

// The integer sums of a span: two rows by two tokens a lane.
KVASIR_DEVICE void dot_span(const RawCodes (&raw)[kBlocksPerSpan], const TileView& x, std::int64_t first,
                            int num_blocks, std::int32_t (&dots)[4]) {
  const int g = simt::lane_index() / 4, j = simt::lane_index() % 4;
  const bool exists = g < x.width;
  const std::uint32_t with_outliers = outlier_blocks(x, first, num_blocks);
  std::uint32_t a[4], codes[2];
  if (with_outliers != 0) {
    KVASIR_UNROLL
    for (int b = 0; b < kBlocksPerSpan; ++b) {
      if ((with_outliers >> b & 1u) == 0) continue;
      decode<W8a8Span>(raw[b], j, a);
      load_inputs(x.outliers[(first + b) * x.width + g].q, j, exists, codes);
      simt::mma_s8(dots, a, codes);
    }
    for (int d = 0; d < 4; ++d) dots[d] *= 1 << kOutlierShift;
  }
  KVASIR_UNROLL
  for (int b = 0; b < kBlocksPerSpan; ++b) {
    if (b >= num_blocks) break;
    decode<W8a8Span>(raw[b], j, a);
    load_inputs(x.blocks[(first + b) * x.width + g].q, j, exists, codes);
    simt::mma_s8(dots, a, codes);
  }
}

// Writes the products of span s for this warp's place in the stage.
KVASIR_DEVICE void multiply_span(const MatmulArgs& args, std::int64_t group, std::int64_t s,
                                 const RawCodes (&raw)[kBlocksPerSpan], const TileView& x,
                                 SpanProduct* products) {
  const int g = simt::lane_index() / 4, j = simt::lane_index() % 4,
            num_blocks = kernels::blocks_of_span(args.k, s);
  const std::int64_t first = s * kBlocksPerSpan;
  const float* scales = span_scales(span_at(args.weights, args.k, group, s), num_blocks);
  const float of_rows[2] = {simt::load(scales + 2 * g), simt::load(scales + 2 * g + 1)};
  std::int32_t dots[4] = {};
  dot_span(raw, x, first, num_blocks, dots);
  KVASIR_UNROLL
  for (int d = 0; d < 4; ++d) {
    const int token = 2 * j + d % 2, row = 2 * g + d / 2;
    if (token >= args.num_tokens) continue;
    const float scale = of_rows[d / 2] * simt::load(&x.blocks[first * x.width + token].scale);
    simt::store(products + (simt::warp_index() * args.num_tokens + token) * kRows + row,
                SpanProduct{static_cast<float>(dots[d]), scale});
  }
}

KVASIR_KERNEL(kThreads)
void matvec_w8a8_kernel(MatmulArgs args) {
  const std::int64_t group = simt::block_index().x, num_spans = kernels::num_spans(args.k);
  const TileView x = tile_view(args.quantized, args.k, 0, args.num_tokens);
  const int tokens = args.num_tokens, token = simt::thread_index() / kRows,
            row = simt::thread_index() % kRows;
  RawCodes raw[kBlocksPerSpan] = {};
  load_span(args, group, simt::warp_index(), raw);
  float sum = 0.0f;
  int buffer = 0;
  for (std::int64_t first = 0; first < num_spans; first += kWarps, buffer ^= 1) {
    SpanProduct* products = products_of(buffer, tokens);
    const std::int64_t s = first + simt::warp_index();
    if (s < num_spans) multiply_span(args, group, s, raw, x, products);
    load_span(args, group, s + kWarps, raw);
    simt::sync_block();
    if (token >= tokens) continue;
    for (int i = 0; i < kWarps && first + i < num_spans; ++i) {
      const SpanProduct product = simt::load(products + (i * tokens + token) * kRows + row);
      sum = simt::fma_rn(product.dot, product.scale, sum);
    }
  }
  if (token >= tokens || group * kRows + row >= args.num_rows) return;
  float* out = args.out + token * args.out_stride + group * kRows + row;
  simt::store(out, args.accumulate ? simt::load(out) + sum : sum);
}

}  // namespace

void matvec_w8a8(simt::Device& device, const MatmulArgs& args) {
  const auto groups = static_cast<std::uint32_t>((args.num_rows + kRows - 1) / kRows);
  simt::launch<matvec_w8a8_kernel>(
      device, {groups}, kThreads,
      2 * stage_products(args.num_tokens) * static_cast<std::int64_t>(sizeof(SpanProduct)), args);
}

}  // namespace kvasir::cuda
