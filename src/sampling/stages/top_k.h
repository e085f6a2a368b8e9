#pragma once

#include <cstddef>
#include <vector>

#include "sampling/candidate.h"

namespace kvasir::sampling {

// Keeps the k most likely candidates (lower ids first among equals), in their order. Requires: k >= 1.
void keep_top_k(std::vector<Candidate>& candidates, std::size_t k, std::vector<Candidate>& scratch);

}  // namespace kvasir::sampling
