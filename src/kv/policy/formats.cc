#include "kv/policy/formats.h"

#include <algorithm>
#include <array>
#include <span>

namespace kvasir::kv {
namespace {

constexpr std::array kCoarser = {KvFormat::kQ8,    KvFormat::kK8V4,  KvFormat::kK4cV4, KvFormat::kK4V4,
                                 KvFormat::kK4cV3, KvFormat::kK4V3,  KvFormat::kK3cV3, KvFormat::kK3V3,
                                 KvFormat::kK4V2,  KvFormat::kK3cV2, KvFormat::kK3V2,  KvFormat::kK2pV2};

// The greatest loss of a format, in drops, that is better for all blocks than any drop.
constexpr float kTolerableLoss = 0.1f;

// Whether another rung is better in one way and not worse in the other.
bool is_dominated(const Rung& rung, std::span<const Rung> rungs) {
  return std::ranges::any_of(rungs, [&](const Rung& other) {
    return other.bytes <= rung.bytes && other.cost <= rung.cost &&
           (other.bytes < rung.bytes || other.cost < rung.cost);
  });
}

}  // namespace

std::vector<KvFormat> coarser_formats(const PolicyView& view, bool with_components) {
  std::vector<KvFormat> formats;
  for (KvFormat format : kCoarser) {
    if (has_key_components(format) && !with_components) continue;
    if (view.costs[format] >= 0.0f && view.can_have(format)) formats.push_back(format);
  }
  return formats;
}

std::vector<Rung> ladder_of(const PolicyView& view, bool with_components) {
  std::vector<Rung> candidates;
  for (const KvFormat format : coarser_formats(view, with_components)) {
    candidates.push_back({format, view.bytes(format), view.costs[format]});
  }
  candidates.push_back({KvFormat::kGone, 0, view.costs[KvFormat::kGone]});
  std::vector<Rung> rungs = {{view.cells.new_cells(), view.new_cell_bytes(), 0.0f}};
  for (const Rung& next : candidates) {
    if (is_dominated(next, candidates) || !is_coarser(next.format, rungs.back().format)) continue;
    while (rungs.size() > 1 &&
           loss_per_byte(rungs[rungs.size() - 2], rungs.back()) >= loss_per_byte(rungs.back(), next)) {
      rungs.pop_back();
    }
    rungs.push_back(next);
  }
  return rungs;
}

bool formats_would_do(const PolicyView& view, std::span<const Rung> rungs) {
  std::int64_t least = rungs.front().bytes;
  for (const Rung& rung : rungs) {
    if (rung.format != KvFormat::kGone && rung.cost <= kTolerableLoss * view.costs[KvFormat::kGone]) least = rung.bytes;
  }
  const std::int64_t of_others = (view.num_blocks() - view.num_full_blocks) * view.new_cell_bytes();
  return view.num_full_blocks * least + of_others <= view.allowed_bytes();
}

}  // namespace kvasir::kv
