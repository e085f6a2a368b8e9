// The formats that a model's cells may become coarser to.
#pragma once

#include <span>
#include <vector>

#include "kv/policy/policy.h"

namespace kvasir::kv {

// Finest first, without those that the model shall not use or its head size does not allow, and without
// kGone. Formats with keys in components, which the first block cannot have, are there where the policy knows that.
std::vector<KvFormat> coarser_formats(const PolicyView& view, bool with_components = false);

// A format with what it takes and what it loses.
struct Rung {
  KvFormat format = KvFormat::kF16;
  std::int64_t bytes = 0;
  float cost = 0.0f;
};

// The loss of going from one rung to a coarser one, per byte saved.
inline float loss_per_byte(const Rung& from, const Rung& to) {
  return (to.cost - from.cost) / static_cast<float>(from.bytes - to.bytes);
}

// Whether a block may have the format: not a sequence's first, where its keys are in components.
inline bool suits(KvFormat format, std::int32_t block) { return !has_key_components(format) || block >= kNumSinkBlocks; }

// From what new cells are to kGone, each rung losing more per byte that it saves than the one before: no other
// format is the best choice at any price (the lower convex hull of cost over bytes).
std::vector<Rung> ladder_of(const PolicyView& view, bool with_components = false);

// Whether the budget is kept with all full blocks on a rung that is better for all of them than any drop: it loses a tenth of
// one at most.
bool formats_would_do(const PolicyView& view, std::span<const Rung> rungs);

}  // namespace kvasir::kv
