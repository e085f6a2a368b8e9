// The token of the greatest logarithm of its weight plus Gumbel noise.
#pragma once

#include <span>

#include "kvasir/ids.h"
#include "sampling/candidate.h"
#include "sampling/gumbel_noise.h"
#include "sampling/logit_row.h"

namespace kvasir::sampling {

// It has the distribution of the weights (Maddison, Tarlow and Minka, "A* sampling", 2014). Under the same noise two
// distributions at total variation d give the same token with a chance of (1 - d) / (1 + d) at least (Daliri, Musco and
// Suresh, "Coupling without communication and drafter-invariant speculative decoding", 2024).
// It is computed as a race, which is the same: the token of the least E / weight wins, the lowest id among equals.

// Whatever their order. A token of weight 0 never wins. Requires: a positive weight.
TokenId gumbel_max(std::span<const Candidate> candidates, const GumbelNoise& noise);

// The same over a whole row with nothing filtered out. Requires: row.max() is finite.
TokenId gumbel_max(const LogitRow& row, float inverse_temperature, const GumbelNoise& noise);

}  // namespace kvasir::sampling
