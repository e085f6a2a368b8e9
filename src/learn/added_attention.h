// The attention that a step's queries paid to a block, out of a memory that fades.
#pragma once

#include <algorithm>
#include <cmath>

#include "kv/policy/block_forecast.h"

namespace kvasir::learn {

// `now` and `before`: what DecayedMass's memory has behind a step of one block's queries, and had before it. They are below
// 0 where the block is gone. The sum over queries, in the memory's unit.
inline float added_attention(float now, float before) {
  const kv::AttentionMemory memory = kv::DecayedMass::memory();
  const float weight = memory.weight_of(kv::kTokensPerBlock) / static_cast<float>(kv::kTokensPerBlock);
  return std::max(0.0f, std::abs(now) - memory.kept_share(kv::kTokensPerBlock) * std::abs(before)) / weight;
}

}  // namespace kvasir::learn
