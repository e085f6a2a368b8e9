// How the blocks of one layer and head compare with each other by what was measured of their keys and values.
#pragma once

#include <cstddef>
#include <span>

namespace kvasir::kv {

// For each block the share of all that have less distinct keys, 0 to below 1: [distinctness.size()]. Blocks in
// one of 256 equal ranges rank alike: sorting would take longer than all the rest of a plan.
void rank_by_distinctness(std::span<const float> distinctness, std::span<float> ranks);

// The least SequenceScores::value_magnitude() of the blocks with the longest 1% of values, and of one at
// least. Tokens with massive values hold a sentence together although little attention goes to them: without
// them models repeat themselves (VaSE).
std::size_t least_massive_magnitude(std::span<const float> statistics);

}  // namespace kvasir::kv
