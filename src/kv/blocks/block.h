// The block pool's record of one block: 16 tokens of every layer of one layer group.
#pragma once

#include <cstdint>

#include "kv/cells/cell.h"
#include "kvasir/ids.h"

namespace kvasir::kv {

// A node of the prefix index: one block's worth of tokens behind one exact prefix.
enum class PrefixNodeId : std::int32_t {};
inline constexpr PrefixNodeId kNoPrefixNode{-1};

// A tenant, by a small number: a block counts for the tenant that computed it first.
enum class CacheOwner : std::int32_t {};
// Public blocks, and tenants beyond those that have a number of their own.
inline constexpr CacheOwner kAnyOwner{0};

// Contents that a request may find again.
struct CachedContents {
  PrefixNodeId node = kNoPrefixNode;
  CacheOwner owner = kAnyOwner;
};

struct Block {
  std::int32_t ref_count = 0;   // sequences that hold it
  CachedContents contents;      // its contents by the prefix index, also while it is free
  std::int32_t num_hits = 0;    // since it holds that
  double least_priority = 0.0;  // in the eviction order: nothing behind it in its prefix has more
};

}  // namespace kvasir::kv
