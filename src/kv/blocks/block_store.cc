#include "kv/blocks/block_store.h"

#include <algorithm>

#include "base/check.h"
#include "kv/cells/key_bases.h"

namespace kvasir::kv {
namespace {

std::int32_t total_blocks(const KvCacheConfig& config) {
  std::int32_t total = 0;
  for (const LayerGroup& group : config.groups) total += group.num_block_ids();
  return total;
}

std::vector<CellStore::Group> cell_groups(const KvCacheConfig& config) {
  std::vector<CellStore::Group> groups;
  for (const LayerGroup& group : config.groups)
    groups.push_back({group.num_block_ids(), group.cells_per_block, group.head_dim, group.key_bases == nullptr ? nullptr : group.key_bases->data()});
  return groups;
}

}  // namespace

BlockStore::BlockStore(const KvCacheConfig& config)
    : config_(config),
      index_(config.prefix_hash_key, config.num_groups(), config.prefix_cache ? total_blocks(config) : 0,
             config.prefix_hash_bits),
      cells_(cell_groups(config), config.new_cells, config.memory_bytes(), config.num_spare_pages()) {
  for (const LayerGroup& group : config.groups) {
    pools_.emplace_back(group.num_block_ids());
    room_bytes_ += std::int64_t{group.num_blocks} * group.cells_per_block *
                   cell_bytes(config.new_cells, group.head_dim);
  }
  const auto full = std::ranges::find_if(config.groups, &LayerGroup::is_full);
  scored_group_ = full == config.groups.end() ? 0 : static_cast<std::int32_t>(full - config.groups.begin());
}

bool BlockStore::has_empty(std::span<const std::int32_t> num_blocks) const {
  for (std::int32_t g = 0; g < num_groups(); ++g) {
    if (pool(g).num_empty_free() < num_blocks[static_cast<std::size_t>(g)]) return false;
  }
  return has_memory_for(num_blocks);
}

// Without an eviction.
bool BlockStore::has_memory_for(std::span<const std::int32_t> num_blocks) const {
  std::int64_t num_bytes = 0;
  for (std::int32_t g = 0; g < num_groups(); ++g) {
    num_bytes += num_blocks[static_cast<std::size_t>(g)] * cells_.new_block_bytes(g);
  }
  return cells_.arena().used_bytes() + num_bytes <= room_bytes_ && cells_.has_room_for(num_blocks);
}

bool BlockStore::make_room(CacheOwner owner, std::span<const std::int32_t> num_blocks) {
  const auto expect = [&](std::int32_t sign) {
    for (std::int32_t g = 0; g < num_groups(); ++g) {
      mutable_pool(g).expect(owner, sign * num_blocks[static_cast<std::size_t>(g)]);
    }
  };
  expect(1);
  const bool is_there = evict_for(num_blocks);
  expect(-1);
  return is_there;
}

bool BlockStore::evict_for(std::span<const std::int32_t> num_blocks) {
  for (std::int32_t g = 0; g < num_groups(); ++g) {
    while (pool(g).num_empty_free() < num_blocks[static_cast<std::size_t>(g)]) CHECK(evict_from(g));
  }
  while (!has_memory_for(num_blocks)) {
    if (!evict_from_fullest()) return false;
  }
  return true;
}

bool BlockStore::evict_from_fullest() {
  const auto fullest = std::ranges::max_element(pools_, {}, &BlockPool::num_cached_free);
  return evict_from(static_cast<std::int32_t>(fullest - pools_.begin()));
}

// The group's block of the least reuse value.
bool BlockStore::evict_from(std::int32_t group) {
  const auto eviction = mutable_pool(group).evict();
  if (!eviction) return false;
  index_.remove_block(eviction->contents, group);
  if (group == scored_group_) prefix_scores_.forget(eviction->block);
  cached_bytes_ -= cells_.bytes(group, eviction->block);
  cells_.clear(group, eviction->block);
  ++num_evictions_;
  return true;
}

bool BlockStore::make_empty(std::int32_t group) {
  while (pool(group).num_empty_free() == 0) {
    if (!evict_from(group)) return false;
  }
  return true;
}

BlockId BlockStore::take(CacheOwner owner, std::int32_t group) {
  const auto block = mutable_pool(group).allocate(owner);
  CHECK(block.has_value());
  return *block;
}

void BlockStore::release(std::int32_t group, BlockId block) {
  BlockPool& pool = mutable_pool(group);
  const std::int64_t bytes = cells_.bytes(group, block);
  const double priority = pool.release(block, std::max<std::int64_t>(1, bytes));
  if (pool.ref_count(block) > 0) return;
  const PrefixNodeId node = pool.contents(block);
  if (node == kNoPrefixNode) return cells_.clear(group, block);
  cached_bytes_ += bytes;
  // Without the block before it no prefix could use it.
  const PrefixNodeId parent = index_.parent(node);
  const BlockId head = parent == kNoPrefixNode ? kHole : index_.block(parent, group);
  if (head != kHole && pool.ref_count(head) > 0) pool.keep_behind(head, priority);
}

void BlockStore::add_reference(std::int32_t group, BlockId block) {
  if (pool(group).ref_count(block) == 0) cached_bytes_ -= cells_.bytes(group, block);
  mutable_pool(group).add_reference(block);
}

}  // namespace kvasir::kv
