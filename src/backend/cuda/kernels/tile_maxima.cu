// The maximum of every tile of logits: a warp a tile, two logits a lane.
#include "backend/cuda/kernels/launchers.h"
#include "kernels/table.h"

namespace kvasir::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * simt::kWarpSize;
constexpr int kTile = kernels::kLogitsPerTile;

KVASIR_KERNEL(kThreads) void tile_maxima_kernel(TileMaximaArgs args) {
  const std::int64_t tile = std::int64_t{simt::block_index().x} * kWarps + simt::warp_index(),
                     row = simt::block_index().y;
  const std::int64_t num_tiles = (args.n + kTile - 1) / kTile;
  if (tile >= num_tiles) return;  // a whole warp
  float largest = -simt::infinity();
  bool is_lost = false;
  for (std::int64_t i = tile * kTile + simt::lane_index(); i < args.n && i < (tile + 1) * kTile;
       i += simt::kWarpSize) {
    const float logit = simt::load(args.logits + row * args.stride + i);
    is_lost = is_lost || logit != logit;
    largest = simt::max_or_second(logit, largest);
  }
  for (int distance = simt::kWarpSize / 2; distance > 0; distance /= 2) {
    largest = simt::max_or_second(simt::shuffle_xor(largest, distance), largest);
  }
  const bool is_any_lost = simt::any_lane(is_lost);
  if (simt::lane_index() == 0)
    simt::store(args.maxima + row * args.maxima_stride + tile, is_any_lost ? simt::quiet_nan() : largest);
}

}  // namespace

void tile_maxima(simt::Device& device, const TileMaximaArgs& args) {
  const std::int64_t num_tiles = (args.n + kTile - 1) / kTile;
  const simt::Dim grid = {static_cast<std::uint32_t>((num_tiles + kWarps - 1) / kWarps),
                          static_cast<std::uint32_t>(args.num_rows)};
  simt::launch<tile_maxima_kernel>(device, grid, kThreads, 0, args);
}

}  // namespace kvasir::cuda
