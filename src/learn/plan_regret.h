// The regret of one act of a priced ladder: its plan beside the one that knew which attention would come.
#pragma once

#include <span>
#include <vector>

#include "kv/policy/block_forecast.h"
#include "kv/policy/policy.h"

namespace kvasir::learn {

// Costs are the planner's: the sum over blocks of the head's weight x attention x loss, and of what a drop costs beyond. What
// it costs beyond is for the chance that the block is asked for. That is no attention, so both plans count the forecast's.
//
//   left() = sum of (realised - forecast attention) x (loss in the plan - loss in the best) + planned - planned_best
//         <= middle + slack
//
// For a planner that finds the cheapest plan there is no slack. This one is greedy: plans end on different bytes within their
// last step, and its guards of heads forbid some steps.
struct PlanRegret {
  double planned = 0.0;       // what the forecast says that its plan costs
  double planned_best = 0.0;  // and that the best plan does
  double realised = 0.0;      // what the plan costs by the attention that came
  double best = 0.0;          // and the plan by that attention, under the same bytes, guards and drops' extra costs
  double middle = 0.0;        // sum of |realised - forecast attention| x |difference of the plans' losses|

  double left() const { return realised - best; }
  double slack() const { return planned > planned_best ? planned - planned_best : 0.0; }
  // But for the rounding of sums.
  bool is_bounded() const;             // by middle alone
  bool is_bounded_with_slack() const;  // always

  PlanRegret& operator+=(const PlanRegret& other);
  PlanRegret scaled(double factor) const;
};

// What the forecasts, one of each cell, say that their plan under the view's settings costs.
double planned_cost(const kv::PolicyView& view, std::span<const kv::BlockForecast> forecasts);

// `realised`: the attention that came, by cell and full block, in the unit of BlockForecast.
PlanRegret regret_of(const kv::PolicyView& view, std::span<const kv::BlockForecast> forecasts,
                     std::span<const std::vector<float>> realised);

}  // namespace kvasir::learn
