#include "learn/plan_regret.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>

#include "kv/policy/priced_ladder.h"

namespace kvasir::learn {
namespace {

constexpr double kRounding = 1e-9;  // of sums in double
constexpr float kLeastMean = 1e-6f;

float mean_of(std::span<const float> values) {
  return std::accumulate(values.begin(), values.end(), 0.0f) / static_cast<float>(std::max<std::size_t>(1, values.size()));
}

// The attention that came, with chances that make a drop's extra cost the forecast's: the planner counts a chance in means of
// a head's attention.
kv::BlockForecast in_hindsight(const kv::BlockForecast& forecast, const std::vector<float>& realised) {
  kv::BlockForecast known = {.attention = realised, .asked = forecast.asked};
  const float factor = mean_of(forecast.attention) / std::max(kLeastMean, mean_of(realised));
  for (float& chance : known.asked) chance = std::min(chance * factor, kv::BlockForecast::kGreatest);
  return known;
}

void plan_with(kv::PricedLadder& ladder, std::span<const kv::BlockForecast> forecasts) {
  for (const kv::BlockForecast& forecast : forecasts) ladder.add_cell(forecast);
  std::vector<kv::CellAction> actions;
  ladder.plan(actions);
}

template <class Visit>
void for_each_block(const kv::PolicyView& view, const Visit& visit) {
  for (std::int32_t cell = 0; cell < view.num_cells(); ++cell) {
    for (std::int32_t b = 0; b < view.num_full_blocks; ++b) visit(b, cell);
  }
}

}  // namespace

bool PlanRegret::is_bounded() const { return left() <= middle + kRounding * (realised + best); }

bool PlanRegret::is_bounded_with_slack() const {
  return left() <= middle + slack() + kRounding * (realised + best + planned + planned_best);
}

PlanRegret& PlanRegret::operator+=(const PlanRegret& other) {
  planned += other.planned;
  planned_best += other.planned_best;
  realised += other.realised;
  best += other.best;
  middle += other.middle;
  return *this;
}

PlanRegret PlanRegret::scaled(double factor) const {
  return {factor * planned, factor * planned_best, factor * realised, factor * best, factor * middle};
}

double planned_cost(const kv::PolicyView& view, std::span<const kv::BlockForecast> forecasts) {
  kv::PricedLadder ladder(view);
  plan_with(ladder, forecasts);
  double cost = 0.0;
  for_each_block(view, [&](std::int32_t b, std::int32_t cell) { cost += ladder.cost_of(b, cell).cost(); });
  return cost;
}

PlanRegret regret_of(const kv::PolicyView& view, std::span<const kv::BlockForecast> forecasts,
                     std::span<const std::vector<float>> realised) {
  kv::PricedLadder by_forecast(view), by_truth(view);
  std::vector<kv::BlockForecast> known;
  for (std::size_t cell = 0; cell < forecasts.size(); ++cell) known.push_back(in_hindsight(forecasts[cell], realised[cell]));
  plan_with(by_forecast, forecasts);
  plan_with(by_truth, known);
  PlanRegret regret;
  for_each_block(view, [&](std::int32_t b, std::int32_t cell) {
    const kv::PricedLadder::BlockCost plan = by_forecast.cost_of(b, cell), best = by_truth.cost_of(b, cell);
    const double extra = plan.is_dropped ? plan.extra : 0.0, extra_of_best = best.is_dropped ? plan.extra : 0.0;
    regret.planned += plan.attention * plan.loss + extra;
    regret.planned_best += plan.attention * best.loss + extra_of_best;
    regret.realised += best.attention * plan.loss + extra;
    regret.best += best.attention * best.loss + extra_of_best;
    regret.middle += std::abs(best.attention - plan.attention) * std::abs(plan.loss - best.loss);
  });
  return regret;
}

}  // namespace kvasir::learn
