// The second layer of the gate: tasks, along given solutions and as questions over distractors.
#pragma once

#include <cstdint>
#include <vector>

#include "eval/gate/arm_divergence.h"
#include "eval/gate/exact_answers.h"
#include "eval/gate/gate_check.h"

namespace kvasir::eval {

struct TaskLimits {
  double kl = 0.01;        // mean along the solutions, nats
  double worst_kl = 0.05;  // of a text
  double kept = 0.95;      // of questions over distractors
  std::int32_t least_texts = 4;
  std::int32_t least = 20;          // items that count, of the layer
  std::int32_t least_of_kind = 5;   // .. of a kind
};

struct TaskItems {
  std::vector<ScoredText> solutions;        // several tasks each, solved one behind the other
  std::vector<ExactQuestion> distractors;
  TaskLimits limits = {};
};

// Errors: as GateArm's.
Result<GateLayer> run_task_layer(const GateArms& arms, const TaskItems& items, const GateProgress& progress);

}  // namespace kvasir::eval
