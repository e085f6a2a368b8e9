// One side of a comparison: a model with its settings, which scores texts and answers questions.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "eval/scoring.h"
#include "kvasir/engine.h"

namespace kvasir::eval {

struct ArmQuestion {
  std::vector<TokenId> prompt;
  std::int32_t max_tokens = 0;
  std::string schema = {};            // the answer's JSON Schema; empty: it is free
  bool ignores_end = false;           // the answer has max_tokens
  std::int32_t policy_acts_at = 0;    // tokens of the prompt, once; 0: behind each chunk and while it answers
};

struct ArmAnswer {
  std::vector<TokenId> token_ids;
  bool is_ended = false;  // by itself, not for want of tokens
};

// Both arms of a gate are given the same tokens in the same order. Thread safety: none.
class GateArm {
 public:
  GateArm() = default;
  GateArm(const GateArm&) = delete;
  GateArm& operator=(const GateArm&) = delete;
  virtual ~GateArm() = default;

  // Shows the logits after every position, in order. `policy_acts_at` as ArmQuestion's. Errors: as score_prompt.
  virtual Result<PromptScore> score(std::span<const TokenId> text, std::int32_t policy_acts_at,
                                    const LogitsObserver& observer) = 0;
  // The most likely answer. Errors: as run_request.
  virtual Result<ArmAnswer> answer(const ArmQuestion& question) = 0;
};

// Both, for what compares them.
struct GateArms {
  GateArm& reference;
  GateArm& changed;
};

// Told how far a layer is, 0 to 1.
using GateProgress = std::function<void(std::string_view what, double fraction)>;

}  // namespace kvasir::eval
