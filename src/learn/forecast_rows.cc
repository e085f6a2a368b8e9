#include "learn/forecast_rows.h"

#include <algorithm>
#include <numeric>

#include "learn/added_attention.h"

namespace kvasir::learn {
namespace {

constexpr float kMostMeans = 300.0f;        // of a block's later attention
constexpr float kMemoriesPerHorizon = 2.5f;  // the queries of a horizon are so many times a long memory's

std::vector<float> added_to(std::span<const float> now, std::span<const float> before) {
  std::vector<float> of_step(now.size());
  for (std::size_t b = 0; b < now.size(); ++b) of_step[b] = added_attention(now[b], b < before.size() ? before[b] : 0.0f);
  return of_step;
}

}  // namespace

float target_of(float later_attention, float mean) { return std::min(later_attention / (mean * kMemoriesPerHorizon), kMostMeans); }

void ForecastRows::plan(const kv::PolicyView& view, std::vector<kv::CellAction>& /*actions*/) const {
  std::vector<Cell>& cells = groups_[view.group];
  cells.resize(static_cast<std::size_t>(view.num_cells()));
  for (std::int32_t cell = 0; cell < view.num_cells(); ++cell) see(view, cell, cells[static_cast<std::size_t>(cell)]);
  if (!std::ranges::binary_search(marks_, view.num_full_blocks)) return;
  const kv::DecayedMass mass(view);
  kv::ForecastInputs inputs(view, mass);
  for (std::int32_t cell = 0; cell < view.num_cells(); ++cell) {
    if (!inputs.read(cell)) continue;
    cells[static_cast<std::size_t>(cell)].noted.push_back({.mark = view.num_full_blocks,
                                                           .mean = inputs.mean(),
                                                           .inputs = inputs.blocks(),
                                                           .later = std::vector<float>(inputs.blocks().size(), 0.0f),
                                                           .greatest_share = std::vector<float>(inputs.blocks().size(), 0.0f)});
  }
}

void ForecastRows::see(const kv::PolicyView& view, std::int32_t cell, Cell& seen) const {
  const std::span<const float> scores = view.scores->scores(cell);
  const std::vector<float> of_step = added_to(scores, seen.scores);
  const float sum = std::accumulate(of_step.begin(), of_step.end(), 0.0f);
  for (Noted& noted : seen.noted) {
    for (std::size_t b = 0; b < std::min(noted.later.size(), of_step.size()); ++b) {
      noted.later[b] += of_step[b];
      if (sum > 0.0f) noted.greatest_share[b] = std::max(noted.greatest_share[b], of_step[b] / sum);
    }
  }
  seen.scores.assign(scores.begin(), scores.end());
  const auto is_due = [&](const Noted& noted) { return view.num_full_blocks >= noted.mark + kHorizonBlocks; };
  std::int32_t num_before = 0;
  for (const auto& [group, cells] : groups_) num_before += group < view.group ? static_cast<std::int32_t>(cells.size()) : 0;
  for (const Noted& noted : seen.noted) {
    if (is_due(noted)) emit(num_before + cell, noted);
  }
  std::erase_if(seen.noted, is_due);
}

void ForecastRows::emit(std::int32_t cell, const Noted& noted) const {
  for (std::size_t b = 0; b < noted.inputs.size(); ++b) {
    rows_.push_back({.inputs = noted.inputs[b],
                     .cell = cell,
                     .target = target_of(noted.later[b], noted.mean),
                     .asked = noted.greatest_share[b] > kAskedShare ? 1.0f : 0.0f});
  }
}

}  // namespace kvasir::learn
