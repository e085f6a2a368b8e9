// The blocks of one layer group: who is free, who is held, who still caches something.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kv/block.h"
#include "kv/cell.h"
#include "kvasir/ids.h"

namespace kvasir::kv {

// Hands out fixed-size KV block ids and remembers which free ones still hold reusable contents.
// Bookkeeping only: it never touches KV memory, which the runtime owns.
//
// Thread safety: none; the engine thread is the only caller.
// Invariants: free + referenced == capacity; a block is in the free list iff its reference count is 0.
class BlockPool {
 public:
  struct Eviction {
    BlockId block;
    PrefixNodeId contents;  // what it cached until now, for the prefix index to forget
  };

  explicit BlockPool(std::int32_t num_blocks);

  // Takes a free block that caches nothing, with reference count 1. Empty when there is none: evict() may
  // make one.
  std::optional<BlockId> allocate();
  // Makes the least recently freed block that caches something cache nothing. Empty when there is none.
  std::optional<Eviction> evict();
  // One more holder of a block that caches something or is already held.
  void add_reference(BlockId id);
  // One holder less. Requires: ref_count(id) > 0. Contents survive until the block is allocated again.
  void release(BlockId id);

  // Records what the block caches. Requires: it is held and caches nothing yet.
  void set_contents(BlockId id, PrefixNodeId contents);

  std::int32_t num_blocks() const { return static_cast<std::int32_t>(blocks_.size()); }
  std::int32_t num_free() const { return num_free_; }
  std::int32_t num_cached_free() const { return num_cached_free_; }
  std::int32_t num_empty_free() const { return num_free_ - num_cached_free_; }
  std::int32_t ref_count(BlockId id) const { return at(id).ref_count; }
  PrefixNodeId contents(BlockId id) const { return at(id).contents; }
  // The empty ones from the next to be allocated on, then the cached ones from the next to be evicted on; a
  // walk for tests and reports.
  std::vector<BlockId> free_list() const;

 private:
  Block& at(BlockId id) { return blocks_[static_cast<std::size_t>(index_of(id))]; }
  const Block& at(BlockId id) const { return blocks_[static_cast<std::size_t>(index_of(id))]; }
  void link_free(BlockId id);
  void unlink_free(BlockId id);

  std::vector<Block> blocks_;
  BlockId first_free_ = kHole;  // next to be allocated
  BlockId last_free_ = kHole;
  BlockId first_cached_free_ = kHole;  // those that cache something are the list's end
  std::int32_t num_free_ = 0;
  std::int32_t num_cached_free_ = 0;
};

}  // namespace kvasir::kv
