#include "eval/kv_plan_trials.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "engine/loaded_model.h"
#include "engine/policy_reader.h"

namespace kvasir::eval {

Result<std::vector<std::vector<KvPlanTrial>>> try_kv_plans(const EngineConfig& config, std::span<const std::vector<TokenId>> texts,
                                                                const KvPlanOptions& options, const std::function<void(double)>& progress,
                                                                const KeepGoing& keep_going) {
  KVASIR_TRY(LoadedModel loaded, load_model_file(config, {}));
  const bool has_full_layers = std::ranges::any_of(loaded.kv.groups, [](const kv::LayerGroup& group) { return group.is_full(); });
  if (!has_full_layers) return make_error(ErrorKind::kUnmet, "plans: each layer of this model has a window, so that no policy acts");
  std::vector<std::vector<KvPlanTrial>> all;
  for (const std::vector<TokenId>& text : texts) {
    learn::PlanTrials::Options of_text = {.marks = {},
                                          .budgets = options.budgets,
                                          .query_heads_per_kv_head = loaded.policy_run().query_heads_per_kv_head,
                                          .uses_network = options.uses_network};
    for (std::int32_t tokens = kPlanTrialTokens; tokens < std::ssize(text); tokens += kPlanTrialTokens) {
      of_text.marks.push_back(tokens / kv::kTokensPerBlock);
    }
    const learn::PlanTrials trials(std::move(of_text));
    KVASIR_CHECKED(read_with_policy(loaded, text, trials, keep_going));
    all.push_back(trials.trials());
    progress(static_cast<double>(all.size()) / static_cast<double>(texts.size()));
  }
  return all;
}

double mean_planned_cost(std::span<const KvPlanTrial> trials, double budget) {
  double sum = 0.0, count = 0.0;
  for (const KvPlanTrial& trial : trials) {
    if (trial.budget != budget) continue;
    sum += trial.regret.planned;
    ++count;
  }
  return count > 0.0 ? sum / count : 0.0;
}

}  // namespace kvasir::eval
