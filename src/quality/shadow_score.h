// How far an answer's token distributions are from those of the exact model with the same tokens.
#pragma once

#include <cstdint>
#include <span>

#include "kvasir/request.h"
#include "kvasir/result.h"

namespace kvasir::quality {

// Alternatives per token that are kept while an answer is served, and that the exact path is asked for.
inline constexpr std::int32_t kServedAlternatives = 8, kExactAlternatives = 32;

struct ShadowScore {
  double kl = 0.0;  // nats a token, the mean over the answer
  double log_ratio = 0.0;  // log-probability of the answer's tokens, served less exact, the mean: of draws it is the KL of served from exact
  std::int64_t num_tokens = 0;
  std::int64_t num_agreed = 0;  // tokens at which the likeliest one is the same
};

// KL from the exact distribution to the served one, over the tokens that both lists name and the rest as one: by the
// data-processing inequality a lower bound of the whole divergence. Equal lists give exactly 0. Both are of the model's own
// distribution, before temperature. Error (kUnmet): the lists are not of the same tokens.
Result<ShadowScore> score_shadow(std::span<const PositionLogprobs> served, std::span<const PositionLogprobs> exact);

}  // namespace kvasir::quality
