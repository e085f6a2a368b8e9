#pragma once

#include <vector>

#include "sampling/candidate.h"

namespace kvasir::sampling {

// Keeps the nucleus, in its order: the fewest most likely candidates whose weights reach `mass` (Holtzman et
// al., "The curious case of neural text degeneration", 2020); all when they never do, at least one always.
void keep_top_p(std::vector<Candidate>& candidates, double mass, std::vector<Candidate>& scratch);

}  // namespace kvasir::sampling
