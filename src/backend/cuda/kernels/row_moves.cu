// Rows that move, are looked at, or are added up by weight: what surrounds the matmuls of experts and the head.
#include "backend/cuda/kernels/launchers.h"

namespace kvasir::cuda {
namespace {

constexpr int kThreads = 128;

// A block has a row.
KVASIR_KERNEL(kThreads) void gather_rows_kernel(GatherRowsArgs args) {
  const std::int64_t row = simt::block_index().x;
  const std::int64_t from = args.rows == nullptr ? row : std::int64_t{simt::load(args.rows + row)};
  for (std::int64_t i = simt::thread_index(); i < args.width; i += kThreads) {
    simt::store(args.out + row * args.out_stride + i, simt::load(args.x + from * args.x_stride + i));
  }
}

// A warp has a row.
KVASIR_KERNEL(kThreads) void finite_rows_kernel(FiniteRowsArgs args) {
  constexpr int kWarps = kThreads / simt::kWarpSize;
  const std::int64_t row = std::int64_t{simt::block_index().x} * kWarps + simt::warp_index();
  if (row >= args.num_rows) return;  // a whole warp
  bool is_lost = false;
  for (std::int64_t i = simt::lane_index(); i < args.width; i += simt::kWarpSize) {
    is_lost = is_lost || !(simt::magnitude(simt::load(args.x + row * args.x_stride + i)) < simt::infinity());
  }
  const bool is_any_lost = simt::any_lane(is_lost);
  if (simt::lane_index() == 0) simt::store(args.is_finite + row, static_cast<std::uint8_t>(!is_any_lost));
}

KVASIR_KERNEL(kThreads) void combine_rows_kernel(CombineRowsArgs args) {
  const std::int64_t row = simt::block_index().x, first = row * args.num_choices;
  for (std::int64_t i = simt::thread_index(); i < args.width; i += kThreads) {
    float sum = 0.0f;
    for (int c = 0; c < args.num_choices; ++c) {
      const float x = simt::load(args.x + simt::load(args.slots + first + c) * args.x_stride + i);
      const float product = x * simt::load(args.weights + first + c);
      sum = c == 0 ? product : sum + product;
    }
    if (args.scale != 1.0f) sum = sum * args.scale;
    float* const out = args.out + row * args.out_stride + i;
    simt::store(out, args.replaces ? sum : simt::load(out) + sum);
  }
}

}  // namespace

void gather_rows(simt::Device& device, const GatherRowsArgs& args) {
  simt::launch<gather_rows_kernel>(device, {static_cast<std::uint32_t>(args.num_rows)}, kThreads, 0, args);
}

void finite_rows(simt::Device& device, const FiniteRowsArgs& args) {
  constexpr int kWarps = kThreads / simt::kWarpSize;
  const auto blocks = static_cast<std::uint32_t>((args.num_rows + kWarps - 1) / kWarps);
  simt::launch<finite_rows_kernel>(device, {blocks}, kThreads, 0, args);
}

void combine_rows(simt::Device& device, const CombineRowsArgs& args) {
  simt::launch<combine_rows_kernel>(device, {static_cast<std::uint32_t>(args.num_rows)}, kThreads, 0, args);
}

}  // namespace kvasir::cuda
