// What the block pool knows about one block: 16 tokens of every layer of one layer group.
#pragma once

#include <cstdint>

#include "kv/cell.h"
#include "kvasir/ids.h"

namespace kvasir::kv {

// A node of the prefix index: one block's worth of tokens behind one exact prefix.
enum class PrefixNodeId : std::int32_t {};
inline constexpr PrefixNodeId kNoPrefixNode{-1};

struct Block {
  std::int32_t ref_count = 0;             // sequences that hold it
  PrefixNodeId contents = kNoPrefixNode;  // what the prefix index says it holds, also while it is free
  BlockId previous_free = kHole;          // links of the free list, meaningful while ref_count == 0
  BlockId next_free = kHole;
};

}  // namespace kvasir::kv
