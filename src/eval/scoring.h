// Runs one prompt through the engine for what it says about the prompt itself.
#pragma once

#include <string>
#include <vector>

#include "eval/run_request.h"
#include "kvasir/engine.h"

namespace kvasir::eval {

// The model's scores of a prompt.
struct PromptScore {
  std::vector<float> logprobs;  // natural log of each token's probability given those before it; entry 0 is 0
  double kv_bytes_share = 1.0, kv_bytes_share_peak = 1.0;  // as Usage
};

// The whole prompt is computed, its KV treated as `kv` says: policies act between steps. `observer`, where
// there is one, sees the logits after every position in order. `adapter` as Request's. Blocks until done. Errors: as
// Engine::submit, the request's own, kCancelled.
Result<PromptScore> score_prompt(Engine& engine, std::vector<TokenId> prompt, const KvParams& kv,
                                 LogitsObserver observer = {}, const KeepGoing& keep_going = {},
                                 std::string adapter = {});

// Shows `observer` the logits alone. Errors: as above.
Status observe_logits(Engine& engine, std::vector<TokenId> prompt, LogitsObserver observer,
                      const KeepGoing& keep_going = {});

}  // namespace kvasir::eval
