#include "learn/plan_trials.h"

#include <algorithm>

#include "learn/added_attention.h"
#include "learn/forecast_rows.h"
#include "learn/forecasts_of.h"

namespace kvasir::learn {
namespace {

// What a policy would have seen with the first `num_blocks` blocks alone.
kv::PolicyView view_of(const kv::PolicyView& view, std::int32_t num_blocks, const kv::SequenceScores& scores,
                       const kv::KvPolicySettings& settings, bool uses_network) {
  return {.cells = view.cells,
          .settings = settings,
          .costs = view.costs,
          .group = view.group,
          .blocks = view.blocks.first(static_cast<std::size_t>(num_blocks)),
          .num_full_blocks = num_blocks,
          .scores = &scores,
          .cell_weights = view.cell_weights,
          .network = uses_network ? view.network : nullptr};
}

}  // namespace

void PlanTrials::plan(const kv::PolicyView& view, std::vector<kv::CellAction>& /*actions*/) const {
  Group& group = groups_[view.group];
  see(view, group);
  if (std::ranges::binary_search(options_.marks, view.num_full_blocks)) note(view, group);
}

void PlanTrials::see(const kv::PolicyView& view, Group& group) const {
  group.before.resize(static_cast<std::size_t>(view.num_cells()));
  for (std::int32_t cell = 0; cell < view.num_cells(); ++cell) {
    const std::span<const float> now = view.scores->scores(cell);
    std::vector<float>& before = group.before[static_cast<std::size_t>(cell)];
    for (Noted& noted : group.noted) {
      std::vector<float>& later = noted.later[static_cast<std::size_t>(cell)];
      for (std::size_t b = 0; b < std::min({later.size(), now.size(), before.size()}); ++b) {
        later[b] += added_attention(now[b], before[b]);
      }
    }
    before.assign(now.begin(), now.end());
  }
  const auto is_due = [&](const Noted& noted) { return view.num_full_blocks >= noted.mark + kHorizonBlocks; };
  for (const Noted& noted : group.noted) {
    if (is_due(noted)) judge(view, noted);
  }
  std::erase_if(group.noted, is_due);
}

void PlanTrials::note(const kv::PolicyView& view, Group& group) const {
  Noted noted = {.mark = view.num_full_blocks, .scores = *view.scores, .forecasts = {}, .later = {}};
  for (std::size_t i = 0; i < options_.budgets.size(); ++i) {
    const kv::KvPolicySettings settings = {.policy = this, .budget_share = options_.budgets[i]};
    const kv::PolicyView of_now = view_of(view, noted.mark, noted.scores, settings, options_.uses_network);
    if (i == 0) noted.forecasts = forecasts_of(of_now);
    Sum& sum = sums_[{noted.mark, i}];
    sum.planned.planned += planned_cost(of_now, noted.forecasts);
    sum.num_cells += view.num_cells();
  }
  noted.later.assign(noted.forecasts.size(), std::vector<float>(static_cast<std::size_t>(noted.mark), 0.0f));
  group.noted.push_back(std::move(noted));
}

void PlanTrials::judge(const kv::PolicyView& view, const Noted& noted) const {
  // Of one query, as a memory that is full of such queries has it.
  constexpr float kQueries = static_cast<float>(kHorizonBlocks * kv::kTokensPerBlock);
  const float factor = 1.0f / (kQueries * kv::DecayedMass::of_one_query(1.0f));
  Attention realised = noted.later;
  for (std::vector<float>& of_cell : realised) {
    for (float& attention : of_cell) attention *= factor;
  }
  for (std::size_t i = 0; i < options_.budgets.size(); ++i) {
    const kv::KvPolicySettings settings = {.policy = this, .budget_share = options_.budgets[i]};
    Sum& sum = sums_[{noted.mark, i}];
    sum.known += regret_of(view_of(view, noted.mark, noted.scores, settings, options_.uses_network), noted.forecasts, realised);
    sum.num_known_cells += view.num_cells();
  }
}

std::vector<PlanTrial> PlanTrials::trials() const {
  std::vector<PlanTrial> all;
  for (const auto& [key, sum] : sums_) {
    const bool is_known = sum.num_known_cells == sum.num_cells;
    const double factor = double{kv::DecayedMass::of_one_query(1.0f)} / (sum.num_cells * options_.query_heads_per_kv_head);
    all.push_back({.num_tokens = key.first * kv::kTokensPerBlock,
                   .budget = options_.budgets[key.second],
                   .is_known = is_known,
                   .regret = (is_known ? sum.known : sum.planned).scaled(factor)});
  }
  return all;
}

}  // namespace kvasir::learn
