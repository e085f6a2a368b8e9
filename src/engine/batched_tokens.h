// How many tokens one step takes where nobody says.
#pragma once

#include <cstdint>

#include "kvasir/engine.h"
#include "model/config.h"

namespace kvasir {

// config.max_num_batched_tokens, or what suits the model where that is 0: 512, and up to 2048 where many experts share
// a step's rows, so that each has enough of them to be worth its weights. Never fewer than config.max_num_seqs.
std::int32_t batched_tokens(const EngineConfig& config, const model::ModelConfig& model);

}  // namespace kvasir
