// The tokens behind a step's that guides leave no choice about.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/guided_choice.h"
#include "sched/scheduler_output.h"

namespace kvasir {

// Adds them to what a step sampled, so that they are tokens at once and the next step computes them together. They are
// those that single steps would give, with the same log-probabilities.
//
// Thread safety: none; on the engine thread.
class ForcedRuns {
 public:
  void clear() { sequences_.clear(); }
  // The next scheduled sequence. No guide: it has none, or takes tokens one by one. num_logprobs: alternatives that are
  // asked for with each token.
  void add(GuidedChoice* guide, std::optional<std::int32_t> num_logprobs) { sequences_.push_back({guide, num_logprobs}); }
  // Requires: one add() for each scheduled sequence, in order.
  void extend(sched::ModelStepResult& result);

 private:
  struct Guided {
    GuidedChoice* guide = nullptr;
    std::optional<std::int32_t> num_logprobs;
  };

  std::vector<Guided> sequences_;
  std::vector<TokenId> run_;
  std::vector<sched::SampledToken> tokens_;  // kept for its memory
};

}  // namespace kvasir
