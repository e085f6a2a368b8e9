// What a KV budget is expected to cost a model, by budgets that were measured beforehand.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "eval/kv_plan_trials.h"
#include "eval/run_request.h"
#include "io/kv_calibration.h"
#include "kvasir/engine.h"

namespace kvasir::eval {

// Of which the cost is measured; the largest first.
inline constexpr std::array kCostBudgets = {0.5, 0.4, 0.3, 0.25, 0.2, 0.15, 0.1};
inline constexpr const char* kCostPolicy = "ladder-priced";

// A budget on a window of text.
struct KvCostSample {
  double budget = 1.0;
  double planned = 0.0;    // mean_planned_cost()
  double kl = 0.0;         // from the full cache
  double log_ratio = 0.0;  // of perplexities
};

// The straight line of divergence over planned cost that has the least relative errors, squared, and neither a divergence nor
// a slope below 0. Budgets of one share are a point together. Its range of ratios is where a window more is expected, two
// deviations around the windows' mean. They grow with the root of the divergence, as deviations of log-likelihoods do, and
// are pooled over budgets, for windows are few. Of one window the range is a point. Requires: a sample.
io::KvCostCurve fit_cost_curve(std::span<const KvCostSample> samples);

// By the streaming protocol under kCostBudgets. `trials`: try_kv_plans() of the windows under these. The engine must compute
// kKvStepTokens a step. Errors: as score_prompt.
Result<io::KvCostCurve> measure_cost_curve(Engine& engine, std::span<const std::vector<TokenId>> windows,
                                           std::span<const std::vector<KvPlanTrial>> trials,
                                           const std::function<void(double)>& progress, const KeepGoing& keep_going);

struct KvExpectation {
  double kl = 0.0, ratio_low = 1.0, ratio_high = 1.0;
};
// Between the budgets that were measured. Of a larger one than all: what the largest costs. Nothing below the smallest.
std::optional<KvExpectation> expected_cost(const io::KvCostCurve& curve, double budget);

}  // namespace kvasir::eval
