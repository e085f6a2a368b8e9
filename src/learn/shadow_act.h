// One act on a sequence of which nothing was dropped: all that a forecast would have seen, and the attention that came.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kv/cells/sequence_scores.h"

namespace kvasir::learn {

// Of one layer group. It has amounts of attention and measures of keys and values, and no token.
struct ShadowAct {
  std::int32_t group = 0;
  std::int32_t num_blocks = 0;          // full ones
  kv::SequenceScores scores;            // as they were
  std::vector<float> later;             // [cells, num_blocks]: attention of the next kHorizonBlocks blocks' queries, summed up
  std::vector<float> greatest_share;    // likewise: the most of a step's attention; empty where steps were too long to tell

  std::size_t at(std::int32_t cell, std::int32_t block) const {
    return static_cast<std::size_t>(cell) * static_cast<std::size_t>(num_blocks) + static_cast<std::size_t>(block);
  }
  static constexpr std::int64_t kBytesPerCell = kv::SequenceScores::kBytesPerCell + 2 * sizeof(float);
};

// By layer group without a window.
using ShadowSequence = std::vector<ShadowAct>;

}  // namespace kvasir::learn
