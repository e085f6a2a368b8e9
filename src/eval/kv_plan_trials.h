// What plans of a priced ladder cost on texts that a model reads with nothing dropped.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "eval/run_request.h"
#include "kvasir/engine.h"
#include "learn/plan_trials.h"

namespace kvasir::eval {

using KvPlanTrial = learn::PlanTrial;
using KvPlanRegret = learn::PlanRegret;

// Acts come so many tokens apart, as steps of the streaming protocol do.
inline constexpr std::int32_t kPlanTrialTokens = 128;

struct KvPlanOptions {
  std::vector<double> budgets;
  bool uses_network = false;  // of ladder-learned
};

// By text, each by tokens and budget. Requires: texts of a multiple of kPlanTrialTokens. Errors: those of the loading, kUnmet
// (no layer without a window), kCancelled.
Result<std::vector<std::vector<KvPlanTrial>>> try_kv_plans(const EngineConfig& config, std::span<const std::vector<TokenId>> texts,
                                                                const KvPlanOptions& options, const std::function<void(double)>& progress,
                                                                const KeepGoing& keep_going);

// The mean of what the acts on a text were planned to cost under a budget.
double mean_planned_cost(std::span<const KvPlanTrial> trials, double budget);

}  // namespace kvasir::eval
