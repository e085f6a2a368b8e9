// Formats alone, no scores: the old blocks of a cell become coarser together, and nothing is ever dropped.
#include "kv/policy/formats.h"
#include "kv/policy/registry.h"

namespace kvasir::kv {
namespace {

// Blocks that stay as they were written.
struct ExactBlocks {
  std::int32_t num_first = kNumSinkBlocks, num_newest = kNumGraceBlocks;  // of the full ones
};

// Appends what makes every other full block at least as coarse as `to`, and returns the bytes afterwards.
std::int64_t plan_cell(const PolicyView& view, std::int32_t cell, KvFormat to, ExactBlocks exact, ActionReason reason,
                       std::vector<CellAction>& actions) {
  std::int64_t bytes = 0;
  for (std::int32_t b = 0; b < view.num_blocks(); ++b) {
    const KvFormat present = view.format(b, cell);
    const bool is_old = b >= exact.num_first && b < view.num_full_blocks - exact.num_newest;
    const bool becomes_coarser = is_old && is_coarser(to, present);
    bytes += view.bytes(becomes_coarser ? to : present);
    if (becomes_coarser) actions.push_back({b, cell, to, reason});
  }
  return bytes;
}

// The finest format that keeps the budget, or the coarsest.
class UniformPolicy final : public KvPolicy {
 public:
  std::string_view name() const override { return "uniform"; }

  void plan(const PolicyView& view, std::vector<CellAction>& actions) const override {
    const std::int64_t allowed = view.allowed_bytes();
    const std::vector<KvFormat> formats = coarser_formats(view);
    for (std::int32_t cell = 0; cell < view.num_cells(); ++cell) {
      if (view.present_bytes(cell) <= allowed) continue;
      const std::size_t first_action = actions.size();
      for (KvFormat to : formats) {
        actions.resize(first_action);
        if (plan_cell(view, cell, to, {}, ActionReason::kUniformBudget, actions) <= allowed) break;
      }
    }
  }
};

// One format for all old blocks, whatever the budget is.
class FixedFormatPolicy final : public KvPolicy {
 public:
  explicit FixedFormatPolicy(KvFormat format) : FixedFormatPolicy(name_of(format), format, {}) {}
  FixedFormatPolicy(std::string_view name, KvFormat format, ExactBlocks exact)
      : name_(name), format_(format), exact_(exact) {}
  std::string_view name() const override { return name_; }
  bool has_budget() const override { return false; }

  void plan(const PolicyView& view, std::vector<CellAction>& actions) const override {
    if (!view.can_have(format_)) return;
    for (std::int32_t cell = 0; cell < view.num_cells(); ++cell) {
      plan_cell(view, cell, format_, exact_, ActionReason::kFixedFormat, actions);
    }
  }

 private:
  const std::string_view name_;
  const KvFormat format_;
  const ExactBlocks exact_;
};

// KIVI (Liu et al. 2024) with 4 bits: keys with a range per channel, values with one per token, the newest 128
// tokens exact, the first ones not. Here a channel's range is of 16 tokens instead of 32, and values are rotated
// before they are rounded. Its 2-bit form has no format here: no key takes fewer than 3 bits.
constexpr ExactBlocks kExactInKivi = {.num_first = 0, .num_newest = 128 / kTokensPerBlock};
// KVQuant (Hooper et al. 2024) as far as formats go: keys with a range per channel, values with one per token,
// nothing exact but the first tokens. "Plain" says what is left out: its keys are taken before RoPE, its levels
// are not uniform, and 1% of the numbers stay exact as outliers. So it loses more than the published one.
constexpr ExactBlocks kExactInKvQuant = {.num_first = kNumSinkBlocks, .num_newest = 0};

}  // namespace

const KvPolicy& uniform_policy() {
  static const UniformPolicy policy;
  return policy;
}

std::span<const KvPolicy* const> fixed_format_policies() {
  static const FixedFormatPolicy q8(KvFormat::kQ8), k8v4(KvFormat::kK8V4), k4cv4(KvFormat::kK4cV4),
      k4v4(KvFormat::kK4V4), k4cv3(KvFormat::kK4cV3), k4v3(KvFormat::kK4V3), k3cv3(KvFormat::kK3cV3),
      k3v3(KvFormat::kK3V3), k4v2(KvFormat::kK4V2), k3cv2(KvFormat::kK3cV2), k3v2(KvFormat::kK3V2), k2pv2(KvFormat::kK2pV2),
      kivi_4("kivi-4", KvFormat::kK4cV4, kExactInKivi),
      kvquant_4("kvquant-plain-4", KvFormat::kK4cV4, kExactInKvQuant),
      kvquant_3("kvquant-plain-3", KvFormat::kK3cV3, kExactInKvQuant);
  static const KvPolicy* const all[] = {&q8,    &k8v4, &k4cv4, &k4v4,  &k4cv3, &k4v3,
                                        &k3cv3, &k3v3, &k4v2,  &k3cv2, &k3v2, &k2pv2, &kivi_4, &kvquant_4, &kvquant_3};
  return all;
}

}  // namespace kvasir::kv
