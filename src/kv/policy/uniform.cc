// Formats alone, no scores: all old cells become coarser together, and nothing is ever dropped.
#include <array>

#include "kv/policy/registry.h"

namespace kvasir::kv {
namespace {

constexpr std::array kLadder = {KvFormat::kQ8, KvFormat::kK8V4, KvFormat::kK4V4, KvFormat::kK4V3,
                                KvFormat::kK3V3};

struct Bytes {
  std::int64_t present = 0;
  std::int64_t in_f16 = 0;
};

Bytes bytes_of(const PolicyView& view) {
  Bytes bytes;
  for (std::int32_t b = 0; b < view.num_blocks(); ++b) {
    if (!view.is_held(b)) continue;
    bytes.present += view.cells.bytes(view.group, view.blocks[static_cast<std::size_t>(b)]);
    bytes.in_f16 += view.num_cells() * cell_bytes(KvFormat::kF16, view.cells.head_dim());
  }
  return bytes;
}

// Appends what makes every old cell at least as coarse as `to`, and returns the bytes of the view afterwards.
std::int64_t plan_format(const PolicyView& view, KvFormat to, std::vector<CellAction>& actions) {
  std::int64_t bytes = bytes_of(view).present;
  for (std::int32_t b = kNumSinkBlocks; b < view.num_full_blocks - kNumGraceBlocks; ++b) {
    for (std::int32_t c = 0; view.is_held(b) && c < view.num_cells(); ++c) {
      const KvFormat present = view.format(b, c);
      if (present == KvFormat::kGone || to <= present) continue;
      actions.push_back({b, c, to});
      bytes += cell_bytes(to, view.cells.head_dim()) - cell_bytes(present, view.cells.head_dim());
    }
  }
  return bytes;
}

// The finest format that keeps the budget, or the coarsest.
class UniformPolicy final : public KvPolicy {
 public:
  std::string_view name() const override { return "uniform"; }

  void plan(const PolicyView& view, double budget_share, std::vector<CellAction>& actions) const override {
    const Bytes bytes = bytes_of(view);
    const auto allowed = static_cast<std::int64_t>(budget_share * static_cast<double>(bytes.in_f16));
    if (bytes.present <= allowed) return;
    const std::size_t first_action = actions.size();
    for (KvFormat to : kLadder) {
      if (!supports(to, view.cells.head_dim())) return;
      actions.resize(first_action);
      if (plan_format(view, to, actions) <= allowed) return;
    }
  }
};

}  // namespace

const KvPolicy& uniform_policy() {
  static const UniformPolicy policy;
  return policy;
}

}  // namespace kvasir::kv
