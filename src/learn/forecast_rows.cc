#include "learn/forecast_rows.h"

#include <algorithm>

#include "learn/added_attention.h"

namespace kvasir::learn {
namespace {

constexpr float kMostMeans = 300.0f;        // of a block's later attention
constexpr float kMemoriesPerHorizon = 2.5f;  // the queries of a horizon are so many times a long memory's

}  // namespace

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
                                                           .later = std::vector<float>(inputs.blocks().size(), 0.0f)});
  }
}

void ForecastRows::see(const kv::PolicyView& view, std::int32_t cell, Cell& seen) const {
  const std::span<const float> scores = view.scores->scores(cell);
  for (Noted& noted : seen.noted) {
    for (std::size_t b = 0; b < std::min(noted.later.size(), scores.size()); ++b) {
      noted.later[b] += added_attention(scores[b], b < seen.scores.size() ? seen.scores[b] : 0.0f);
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
                     .target = std::min(noted.later[b] / (noted.mean * kMemoriesPerHorizon), kMostMeans)});
  }
}

}  // namespace kvasir::learn
