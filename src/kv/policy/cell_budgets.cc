#include "kv/policy/cell_budgets.h"

#include <algorithm>

#include "kv/policy/formats.h"

namespace kvasir::kv {
namespace {

// All full blocks of a cell become a format coarser.
struct Step {
  float loss_per_byte;
  std::int32_t cell;
  std::int64_t saved_bytes;
};

// The steps of all cells, the cheapest first; those of a cell in their order.
std::vector<Step> steps_of(const PolicyView& view) {
  const std::vector<Rung> rungs = ladder_of(view);
  std::vector<Step> steps;
  for (std::int32_t cell = 0; cell < view.num_cells(); ++cell) {
    const float weight = view.cell_weights[static_cast<std::size_t>(cell)];
    for (std::size_t r = 0; r + 1 < rungs.size(); ++r) {
      const Rung &from = rungs[r], &to = rungs[r + 1];
      if (to.format == KvFormat::kGone) break;
      steps.push_back(
          {weight * loss_per_byte(from, to), cell, view.num_full_blocks * (from.bytes - to.bytes)});
    }
  }
  std::ranges::stable_sort(steps, {}, &Step::loss_per_byte);
  return steps;
}

}  // namespace

std::vector<std::int64_t> budgets_of_cells(const PolicyView& view) {
  const auto num_cells = static_cast<std::size_t>(view.num_cells());
  const std::int64_t allowed = view.allowed_bytes(), fine = view.num_blocks() * view.new_cell_bytes();
  if (view.cell_weights.empty() || allowed >= fine) return std::vector(num_cells, allowed);
  std::vector<std::int64_t> budgets(num_cells, fine);
  std::int64_t excess = view.num_cells() * (fine - allowed);
  for (const Step& step : steps_of(view)) {
    if (excess <= 0) return budgets;
    const std::int64_t saved = std::min(step.saved_bytes, excess);
    budgets[static_cast<std::size_t>(step.cell)] -= saved;
    excess -= saved;
  }
  for (std::int64_t& budget : budgets) budget -= (excess + view.num_cells() - 1) / view.num_cells();
  return budgets;
}

}  // namespace kvasir::kv
