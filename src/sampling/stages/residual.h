// Checking a guess that was drawn from another distribution, so that the token that comes is drawn from the right one.
//
// Leviathan, Kalman and Matias, "Fast inference from transformers via speculative decoding", 2023; Chen et al.,
// "Accelerating large language model decoding with speculative sampling", 2023.
#pragma once

#include <span>

#include "kvasir/ids.h"
#include "sampling/candidate.h"
#include "sampling/distribution.h"

namespace kvasir::sampling {

// A guess x of probability q(x) counts with the chance min(1, p(x) / q(x)), p being what the token is to be drawn from.
// Where it does not, the token is drawn from max(p - q, 0), made to add up to 1. So the token y comes with
//   q(y) min(1, p(y) / q(y)) + (1 - A) max(p(y) - q(y), 0) / (1 - A) = min(p(y), q(y)) + max(p(y) - q(y), 0) = p(y),
// where A, the sum of min(p, q), is the chance that a guess counts. No rule has a greater one. The proof needs the q that
// the guess was really drawn from, and draws of guess, chance and other token that are independent.

// `uniform` in [0, 1): the chance's draw.
inline bool accepts_guess(double p, double q, double uniform) { return uniform * q < p; }

// The token in place of a guess that did not count. p is weight / total of each candidate, by ascending id. `uniform` in
// [0, 1). kNoToken where rounding leaves nothing to draw from: then p is q, and the guess may as well stay.
TokenId draw_residual(std::span<const Candidate> candidates, double total, const Distribution& q, double uniform);

}  // namespace kvasir::sampling
