#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kvasir/ids.h"
#include "kvasir/sampling_params.h"

namespace kvasir::sampling {

// Whether apply_penalties would change anything.
bool has_penalties(const SamplingParams& params);

// Makes seen tokens less likely (for usual settings), first by repetition, then by frequency and presence:
//   of the prompt or generated:  logit = logit > 0 ? logit / r : logit * r       (Keskar et al., CTRL, 2019)
//   generated c > 0 times:       logit -= frequency_penalty * c + presence_penalty          (the OpenAI API)
// Touches seen tokens only. Requires: token ids below logits.size(). `counts` is scratch: all zeros between
// calls, as long as the longest row so far.
void apply_penalties(std::span<float> logits, const SamplingParams& params, std::span<const TokenId> prompt,
                     std::span<const TokenId> generated, std::vector<std::int32_t>& counts);

}  // namespace kvasir::sampling
