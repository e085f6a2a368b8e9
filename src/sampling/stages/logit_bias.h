#pragma once

#include <span>
#include <utility>

#include "kvasir/ids.h"

namespace kvasir::sampling {

// Adds each bias to its token's logit. Requires: token ids below logits.size().
void apply_logit_bias(std::span<float> logits, std::span<const std::pair<TokenId, float>> biases);

// Makes each token impossible: end-of-generation and stop tokens before min_tokens is reached.
void suppress_tokens(std::span<float> logits, std::span<const TokenId> tokens);

}  // namespace kvasir::sampling
