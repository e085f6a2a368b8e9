// Runs one prompt through the engine for what it says about the prompt itself.
#pragma once

#include <vector>

#include "kvasir/engine.h"

namespace kvasir::eval {

// Natural-log probability of each prompt token given those before it; entry 0 is 0. The whole prompt is
// computed. Blocks until done. Errors: as Engine::submit and as the request's own error.
Result<std::vector<float>> score_prompt(Engine& engine, std::vector<TokenId> prompt);

// Shows `observer` the logits after every position of the prompt, in order. Blocks until done.
Status observe_logits(Engine& engine, std::vector<TokenId> prompt, LogitsObserver observer);

}  // namespace kvasir::eval
