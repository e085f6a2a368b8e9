#include "eval/gate/task_layer.h"

#include <algorithm>
#include <utility>

namespace kvasir::eval {
namespace {

constexpr std::int32_t kSolutionStride = 4;

}  // namespace

Result<GateLayer> run_task_layer(const GateArms& arms, const TaskItems& items, const GateProgress& progress) {
  const TaskLimits& limits = items.limits;
  GateLayer layer{.name = "task", .weight = 0.2, .least = limits.least};
  GateCheck mean{.name = "forced_kl", .limit = limits.kl}, worst{.name = "forced_worst_kl", .limit = limits.worst_kl};
  double sum = 0.0, greatest = 0.0, num_positions = 0.0;
  std::int32_t num_done = 0;
  for (const ScoredText& text : items.solutions) {
    progress("task solutions", num_done / static_cast<double>(items.solutions.size()));
    KVASIR_TRY(const ArmDivergence apart, compare_arms(arms, text, kSolutionStride));
    ++num_done;
    layer.num_items += text.num_tasks;
    sum += apart.kl * static_cast<double>(text.positions.size());
    num_positions += static_cast<double>(text.positions.size());
    greatest = std::max(greatest, apart.kl);
  }
  for (GateCheck* check : {&mean, &worst}) {
    check->num_items = check->num_asked = num_done;
    check->least = limits.least_texts;
  }
  if (num_done > 0) {
    mean.value = sum / num_positions;
    worst.value = greatest;
  }
  KVASIR_TRY(const ItemCount found, count_exact_answers(arms, items.distractors, "task distractors", progress));
  GateCheck kept = found.check("distractors_kept", limits.kept, limits.least_of_kind);
  layer.num_items += kept.counts() ? kept.num_items : 0;
  layer.checks = {mean, worst, std::move(kept)};
  return layer;
}

}  // namespace kvasir::eval
