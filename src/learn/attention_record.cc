#include "learn/attention_record.h"

#include <algorithm>
#include <span>

#include "learn/added_attention.h"
#include "learn/forecast_rows.h"

namespace kvasir::learn {

void AttentionRecord::plan(const kv::PolicyView& view, std::vector<kv::CellAction>& /*actions*/) const {
  std::vector<Cell>& cells = groups_[view.group];
  cells.resize(static_cast<std::size_t>(view.num_cells()));
  for (std::int32_t cell = 0; cell < view.num_cells(); ++cell) {
    Cell& seen = cells[static_cast<std::size_t>(cell)];
    const std::span<const float> now = view.scores->scores(cell);
    std::vector<float>& of_step = seen.steps[view.num_full_blocks];
    for (std::size_t b = 0; b < now.size(); ++b) of_step.push_back(added_attention(now[b], b < seen.before.size() ? seen.before[b] : 0.0f));
    seen.before.assign(now.begin(), now.end());
  }
}

std::vector<float> AttentionRecord::later(std::int32_t group, std::int32_t cell, std::int32_t num_blocks) const {
  const auto found = groups_.find(group);
  if (found == groups_.end() || cell >= std::ssize(found->second)) return {};
  const auto& steps = found->second[static_cast<std::size_t>(cell)].steps;
  std::vector<float> sum(static_cast<std::size_t>(num_blocks), 0.0f);
  std::int32_t num_steps = 0;
  for (auto step = steps.upper_bound(num_blocks); step != steps.end() && num_steps < kHorizonBlocks; ++step, ++num_steps) {
    for (std::size_t b = 0; b < std::min(sum.size(), step->second.size()); ++b) sum[b] += step->second[b];
  }
  if (num_steps == 0) return {};
  const auto num_queries = static_cast<float>(num_steps * kv::kTokensPerBlock);
  for (float& attention : sum) attention /= num_queries * kv::DecayedMass::of_one_query(1.0f);
  return sum;
}

}  // namespace kvasir::learn
