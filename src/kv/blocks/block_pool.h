// The blocks of one layer group: which are free, which are held, which still cache something.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kv/blocks/block.h"
#include "kv/blocks/eviction_order.h"
#include "kv/cells/cell.h"
#include "kvasir/ids.h"

namespace kvasir::kv {

// Hands out fixed-size KV block ids and remembers which free ones still hold reusable contents.
// Bookkeeping only: it never touches KV memory, which the runtime owns.
//
// Thread safety: none; the engine thread is the only caller.
// Invariants: free + referenced == capacity; a block is empty or in the eviction order iff its reference
// count is 0.
class BlockPool {
 public:
  struct Eviction {
    BlockId block;
    PrefixNodeId contents;  // its cached contents until now, for the prefix index to forget
  };

  explicit BlockPool(std::int32_t num_blocks);

  // Takes a free block that caches nothing, with reference count 1, for the owner. Empty when there is none:
  // evict() may make one.
  std::optional<BlockId> allocate(CacheOwner owner = kAnyOwner);
  // Makes the first block in the eviction order cache nothing. Empty when there is none.
  std::optional<Eviction> evict();
  // So many more will be allocated for the owner, or fewer: the owner that needs room gives it.
  void expect(CacheOwner owner, std::int32_t num_blocks) { cached_.own(owner, num_blocks); }
  // One more holder of a block that caches something or is already held.
  void add_reference(BlockId id);
  // A request found the block's contents.
  void count_hit(BlockId id) { ++at(id).num_hits; }
  // One holder less. Requires: ref_count(id) > 0. Contents, of which it has `bytes` > 0, survive until the
  // block is evicted. Returns the priority with which it then waits for that, 0 when it does not.
  double release(BlockId id, std::int64_t bytes);
  // For a held block: when it is free it shall not go before blocks of this priority.
  void keep_behind(BlockId id, double priority);

  // Records what the block caches. Requires: it is held and caches nothing yet.
  void set_contents(BlockId id, const CachedContents& contents);

  std::int32_t num_blocks() const { return static_cast<std::int32_t>(blocks_.size()); }
  std::int32_t num_free() const { return num_empty_free() + num_cached_free(); }
  std::int32_t num_cached_free() const { return cached_.size(); }
  std::int32_t num_empty_free() const { return static_cast<std::int32_t>(empty_.size()); }
  std::int32_t ref_count(BlockId id) const { return at(id).ref_count; }
  PrefixNodeId contents(BlockId id) const { return at(id).contents.node; }
  CacheOwner owner(BlockId id) const { return at(id).contents.owner; }
  // The empty ones from the next to be allocated on, then the cached ones by priority; a walk for tests and
  // reports.
  std::vector<BlockId> free_list() const;

 private:
  Block& at(BlockId id) { return blocks_[static_cast<std::size_t>(index_of(id))]; }
  const Block& at(BlockId id) const { return blocks_[static_cast<std::size_t>(index_of(id))]; }

  std::vector<Block> blocks_;
  std::vector<BlockId> empty_;  // free ones; the last is the next to be allocated
  EvictionOrder cached_;        // the other free ones
};

}  // namespace kvasir::kv
