#include "learn/shadow_judge.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <memory>
#include <optional>

#include "base/check.h"
#include "kv/policy/priced_ladder.h"
#include "kv/policy/registry.h"
#include "learn/forecasts_of.h"

namespace kvasir::learn {
namespace {

// As much attention as a query that asks counts for, in means of the head's: what the planner gives for a block that is sure to
// be asked for.
constexpr double kMeansOfAsking = 30.0;

constexpr float kShareOfTraffic = 0.5f;  // in the chance that a row teaches

// A plan of the view beside what came.
void add_cost(const kv::PolicyView& view, const std::vector<kv::BlockForecast>& forecasts, const ShadowAct& act, double& of_plan, ShadowCost& cost) {
  kv::PricedLadder ladder(view);
  for (const kv::BlockForecast& forecast : forecasts) ladder.add_cell(forecast);
  std::vector<kv::CellAction> actions;
  ladder.plan(actions);
  for (std::int32_t cell = 0; cell < view.num_cells(); ++cell) {
    const double weight = view.weight_of(cell);
    double mean = 0.0;
    for (std::int32_t b = 0; b < act.num_blocks; ++b) mean += double{act.later[act.at(cell, b)]} / act.num_blocks;
    for (std::int32_t b = 0; b < act.num_blocks; ++b) {
      const kv::PricedLadder::BlockCost planned = ladder.cost_of(b, cell);
      const bool was_asked = !act.greatest_share.empty() && act.greatest_share[act.at(cell, b)] > kAskedShare;
      of_plan += weight * (double{act.later[act.at(cell, b)]} + (was_asked ? kMeansOfAsking * mean : 0.0)) * planned.loss;
      if (was_asked) cost.asked_for += weight;
      if (was_asked && planned.is_dropped) cost.asked_for_dropped += weight;
    }
  }
}

std::int32_t cells_before(std::span<const kv::LayerGroup> groups, std::int32_t group) {
  std::int32_t count = 0;
  for (const kv::LayerGroup& before : groups.first(static_cast<std::size_t>(group))) count += before.is_full() ? before.cells_per_block : 0;
  return count;
}

template <class T>
std::vector<T> part_of(const std::vector<T>& all, std::int32_t begin, std::int32_t count) {
  if (all.empty()) return {};
  return {all.begin() + begin, all.begin() + begin + count};
}

}  // namespace

ShadowJudge::ShadowJudge(const kv::KvCacheConfig& config)
    : groups_(config.groups), costs_(config.format_costs), new_cells_(config.new_cells) {
  num_cells_ = cells_before(groups_, static_cast<std::int32_t>(groups_.size()));
}

kv::ServedForecast ShadowJudge::served(const kv::ForecastNetwork& network, std::int64_t version) const {
  CHECK(std::ssize(network.output_biases) == num_cells_);
  kv::ServedForecast forecast{.version = version, .by_group = {}};
  std::int32_t begin = 0;
  for (const kv::LayerGroup& group : groups_) {
    std::shared_ptr<kv::ForecastNetwork>::element_type part = network;
    if (!group.is_full()) {
      forecast.by_group.push_back(nullptr);
      continue;
    }
    part.hidden_biases = part_of(network.hidden_biases, begin, group.cells_per_block);
    part.output_biases = part_of(network.output_biases, begin, group.cells_per_block);
    part.asked_biases = part_of(network.asked_biases, begin, group.cells_per_block);
    begin += group.cells_per_block;
    forecast.by_group.push_back(std::make_shared<const kv::ForecastNetwork>(std::move(part)));
  }
  return forecast;
}

// What a policy would have seen of the act, with all cells as they were written.
template <class Visit>
void ShadowJudge::with_view(const ShadowAct& act, const kv::KvPolicySettings& settings, const Visit& visit) const {
  const kv::LayerGroup& group = groups_[static_cast<std::size_t>(act.group)];
  const kv::CellStore::Group of_store = {.num_blocks = act.num_blocks, .cells_per_block = group.cells_per_block, .head_dim = group.head_dim};
  const std::int64_t num_cells = std::int64_t{act.num_blocks} * group.cells_per_block;
  kv::CellStore cells({&of_store, 1}, new_cells_, 2 * kv::CellArena::bytes_for(num_cells, new_cells_, group.head_dim), 0);
  std::vector<BlockId> blocks;
  for (std::int32_t b = 0; b < act.num_blocks; ++b) blocks.push_back(BlockId{b});
  CHECK(cells.fill(0, blocks, group.cells_per_block));
  kv::PolicyView view{.cells = cells,
                      .settings = settings,
                      .costs = costs_,
                      .group = 0,
                      .blocks = blocks,
                      .num_full_blocks = act.num_blocks,
                      .scores = &act.scores,
                      .cell_weights = group.cell_weights};
  visit(view);
}

std::vector<ShadowCost> ShadowJudge::costs(const ShadowSequence& sequence, std::span<const kv::ServedForecast* const> forecasts) const {
  std::vector<ShadowCost> all(forecasts.size());
  for (const ShadowAct& act : sequence) {
    kv::KvPolicySettings settings{.policy = &kv::learned_ladder_policy()};
    with_view(act, settings, [&](kv::PolicyView& view) {
      for (std::size_t i = 0; i < forecasts.size(); ++i) {
        view.network = forecasts[i] != nullptr ? forecasts[i]->of(act.group) : nullptr;
        const std::vector<kv::BlockForecast> of_act = forecasts_of(view);
        for (std::size_t k = 0; k < kDuelBudgets.size(); ++k) {
          settings.budget_share = kDuelBudgets[k];
          add_cost(view, of_act, act, all[i].of_plan[k], all[i]);
        }
      }
    });
  }
  return all;
}

void ShadowJudge::add_rows(const ShadowSequence& sequence, const kv::ServedForecast* first, std::vector<ForecastRow>& rows) const {
  for (const ShadowAct& act : sequence) {
    const kv::ForecastNetwork* network = first != nullptr ? first->of(act.group) : nullptr;
    const bool knows = network != nullptr && !network->asked_biases.empty();
    const std::int32_t first_cell = cells_before(groups_, act.group);
    with_view(act, {}, [&](const kv::PolicyView& view) {
      const kv::DecayedMass mass(view);
      kv::ForecastInputs inputs(view, mass);
      for (std::int32_t cell = 0; cell < view.num_cells(); ++cell) {
        if (!inputs.read(cell)) continue;
        for (std::int32_t b = 0; b < act.num_blocks; ++b) {
          ForecastRow row{.inputs = inputs.blocks()[static_cast<std::size_t>(b)], .cell = first_cell + cell};
          row.target = target_of(act.later[act.at(cell, b)], inputs.mean());
          const bool can_tell = !act.greatest_share.empty();
          const float came = can_tell && act.greatest_share[act.at(cell, b)] > kAskedShare ? 1.0f : 0.0f;
          const float chance = knows ? 1.0f / (1.0f + std::exp(-network->outputs(static_cast<std::size_t>(cell), row.inputs).log_odds_of_asked)) : came;
          row.asked = can_tell ? kShareOfTraffic * came + (1.0f - kShareOfTraffic) * chance : chance;
          rows.push_back(row);
        }
      }
    });
  }
}

std::optional<kv::ForecastNetwork> whole_network_of(const kv::KvCacheConfig& config) {
  std::optional<kv::ForecastNetwork> all;
  for (const kv::LayerGroup& group : config.groups) {
    if (!group.is_full()) continue;
    if (group.network == nullptr) return std::nullopt;
    if (!all) {
      all = *group.network;
      continue;
    }
    all->hidden_biases.insert(all->hidden_biases.end(), group.network->hidden_biases.begin(), group.network->hidden_biases.end());
    all->output_biases.insert(all->output_biases.end(), group.network->output_biases.begin(), group.network->output_biases.end());
    all->asked_biases.insert(all->asked_biases.end(), group.network->asked_biases.begin(), group.network->asked_biases.end());
  }
  return all;
}

}  // namespace kvasir::learn
