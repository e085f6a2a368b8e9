#include "kv/blocks/block_pool.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"

namespace kvasir::kv {

BlockPool::BlockPool(std::int32_t num_blocks)
    : blocks_(static_cast<std::size_t>(num_blocks)), cached_(num_blocks) {
  empty_.reserve(blocks_.size());
  for (std::int32_t i = num_blocks - 1; i >= 0; --i) empty_.push_back(BlockId{i});
}

std::optional<BlockId> BlockPool::allocate(CacheOwner owner) {
  if (empty_.empty()) return std::nullopt;
  const BlockId id = empty_.back();
  empty_.pop_back();
  at(id).ref_count = 1;
  at(id).contents.owner = owner;
  cached_.own(owner, 1);
  return id;
}

std::optional<BlockPool::Eviction> BlockPool::evict() {
  const BlockId id = cached_.take_first();
  if (id == kHole) return std::nullopt;
  const CachedContents contents = at(id).contents;
  cached_.remove(id);
  cached_.own(contents.owner, -1);
  at(id) = {};
  empty_.push_back(id);
  return Eviction{id, contents.node};
}

void BlockPool::add_reference(BlockId id) {
  Block& block = at(id);
  CHECK(block.ref_count > 0 || block.contents.node != kNoPrefixNode);
  if (block.ref_count == 0) cached_.remove(id);
  ++block.ref_count;
}

double BlockPool::release(BlockId id, std::int64_t bytes) {
  Block& block = at(id);
  CHECK(block.ref_count > 0);
  if (--block.ref_count > 0) return 0.0;
  const CachedContents& contents = block.contents;
  if (contents.node == kNoPrefixNode) {
    cached_.own(contents.owner, -1);
    empty_.push_back(id);
    return 0.0;
  }
  const double value = (1.0 + block.num_hits) / static_cast<double>(bytes);
  return cached_.add(id, contents.owner, value, block.least_priority);
}

void BlockPool::keep_behind(BlockId id, double priority) {
  Block& block = at(id);
  CHECK(block.ref_count > 0);
  block.least_priority = std::max(block.least_priority, priority);
}

void BlockPool::set_contents(BlockId id, const CachedContents& contents) {
  Block& block = at(id);
  CHECK(block.ref_count > 0 && block.contents.node == kNoPrefixNode);
  cached_.own(block.contents.owner, -1);
  block.contents = contents;
  cached_.own(contents.owner, 1);
}

std::vector<BlockId> BlockPool::free_list() const {
  std::vector<BlockId> list(empty_.rbegin(), empty_.rend());
  std::ranges::copy(cached_.by_priority(), std::back_inserter(list));
  return list;
}

}  // namespace kvasir::kv
