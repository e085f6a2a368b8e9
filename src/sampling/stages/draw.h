#pragma once

#include <span>

#include "kvasir/ids.h"
#include "sampling/candidate.h"

namespace kvasir::sampling {

// For guesses that residual sampling checks: no other model has to draw the same.
// The token where the running sum of weights passes `uniform`, in [0, 1), times their total. A token of
// weight 0 is never drawn. Requires: a positive weight.
TokenId draw(std::span<const Candidate> candidates, double uniform);

}  // namespace kvasir::sampling
