// The attention that a step's queries paid to a block, out of a memory that fades.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kv/policy/block_forecast.h"

namespace kvasir::learn {

// Of a step of so many queries: the sum over them, in the unit of DecayedMass's memory. Of more than a few queries it is an
// estimate that leans on the last ones.
class AddedAttention {
 public:
  explicit AddedAttention(std::int32_t num_queries)
      : kept_share_(kv::DecayedMass::memory().kept_share(num_queries)),
        weight_(kv::DecayedMass::memory().weight_of(num_queries) / static_cast<float>(num_queries)) {}
  // What the memory has behind the step, and had before it. They are below 0 where the block is gone.
  float of(float now, float before) const { return std::max(0.0f, std::abs(now) - kept_share_ * std::abs(before)) / weight_; }

 private:
  float kept_share_, weight_;
};

// Of a step of one block's queries.
inline float added_attention(float now, float before) { return AddedAttention(kv::kTokensPerBlock).of(now, before); }

}  // namespace kvasir::learn
