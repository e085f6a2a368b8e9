// The blocks of all layer groups: ids, references, the memory of their cells, and what they cache.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kv/blocks/block_pool.h"
#include "kv/blocks/prefix_index.h"
#include "kv/blocks/prefix_scores.h"
#include "kv/cells/cell_store.h"
#include "kv/kv_cache_config.h"
#include "kvasir/ids.h"

namespace kvasir::kv {

// A block is held by sequences, or free and cached, or empty. Held and cached blocks have cells. Evictions take
// cached blocks out of the prefix index.
//
// Thread safety: none; the engine thread is the only caller.
class BlockStore {
 public:
  // `config` is borrowed. Requires: config.validate() holds.
  explicit BlockStore(const KvCacheConfig& config);
  BlockStore(const BlockStore&) = delete;
  BlockStore& operator=(const BlockStore&) = delete;

  std::int32_t num_groups() const { return config_.num_groups(); }
  const BlockPool& pool(std::int32_t group) const { return pools_[static_cast<std::size_t>(group)]; }
  BlockPool& mutable_pool(std::int32_t group) { return pools_[static_cast<std::size_t>(group)]; }
  PrefixIndex& index() { return index_; }
  const PrefixIndex& index() const { return index_; }
  CellStore& cells() { return cells_; }
  const CellStore& cells() const { return cells_; }
  PrefixScores& prefix_scores() { return prefix_scores_; }
  // The group whose blocks they are kept by.
  std::int32_t scored_group() const { return scored_group_; }

  // `num_blocks`: by group. Evicts cached blocks until every group has that many empty ones and there is memory
  // for their cells; false when there cannot be.
  bool make_room(CacheOwner owner, std::span<const std::int32_t> num_blocks);
  // Whether there are that many empty blocks, and memory for their cells, without an eviction.
  bool has_empty(std::span<const std::int32_t> num_blocks) const;
  // Evicts a block of the group that has the most cached ones; false when nothing is cached.
  bool evict_from_fullest();
  // Evicts blocks of the group until one is empty; false when none is free.
  bool make_empty(std::int32_t group);
  // An empty block, without cells. Requires: the group has one.
  BlockId take(CacheOwner owner, std::int32_t group);
  void add_reference(std::int32_t group, BlockId block);
  // A block that is neither held nor cached gives its memory back.
  void release(std::int32_t group, BlockId block);

  // Bytes of the cells that sequences hold; the rest of the bytes in use is cached.
  std::int64_t held_bytes() const { return cells_.arena().used_bytes() - cached_bytes_; }
  // Memory that no sequence holds; some of it may be cached.
  std::int64_t free_bytes() const { return room_bytes_ - held_bytes(); }
  std::int64_t num_evictions() const { return num_evictions_; }

 private:
  bool has_memory_for(std::span<const std::int32_t> num_blocks) const;
  bool evict_for(std::span<const std::int32_t> num_blocks);
  bool evict_from(std::int32_t group);

  const KvCacheConfig& config_;
  std::vector<BlockPool> pools_;  // one per group
  PrefixIndex index_;
  PrefixScores prefix_scores_;
  std::int32_t scored_group_ = 0;
  CellStore cells_;
  std::int64_t room_bytes_ = 0;    // that cells may take; the memory is a little more, in whole pages
  std::int64_t cached_bytes_ = 0;  // of blocks that no sequence holds
  std::int64_t num_evictions_ = 0;
};

}  // namespace kvasir::kv
