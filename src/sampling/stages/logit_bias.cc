#include "sampling/stages/logit_bias.h"

#include <cstddef>
#include <limits>

namespace kvasir::sampling {

void apply_logit_bias(std::span<float> logits, std::span<const std::pair<TokenId, float>> biases) {
  for (const auto& [token, bias] : biases) logits[static_cast<std::size_t>(token)] += bias;
}

void suppress_tokens(std::span<float> logits, std::span<const TokenId> tokens) {
  for (const TokenId token : tokens) {
    logits[static_cast<std::size_t>(token)] = -std::numeric_limits<float>::infinity();
  }
}

}  // namespace kvasir::sampling
