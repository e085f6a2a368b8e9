#pragma once

#include <span>
#include <vector>

#include "kvasir/ids.h"
#include "sampling/candidate.h"
#include "sampling/logit_row.h"

namespace kvasir::sampling {

// The token where the running sum of weights passes `uniform`, in [0, 1), times their total. A token of
// weight 0 is never drawn. Requires: a positive weight.
TokenId draw(std::span<const Candidate> candidates, double uniform);

// The same over a whole row with nothing filtered out. Requires: row.max() is finite.
TokenId draw(const LogitRow& row, float inverse_temperature, double uniform, std::vector<double>& tile_sums);

}  // namespace kvasir::sampling
