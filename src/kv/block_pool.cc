#include "kv/block_pool.h"

#include <utility>

#include "base/check.h"

namespace kvasir::kv {

BlockPool::BlockPool(std::int32_t num_blocks) : blocks_(static_cast<std::size_t>(num_blocks)) {
  // Highest first, because a block without contents goes to the front: block 0 is handed out first.
  for (std::int32_t i = num_blocks - 1; i >= 0; --i) link_free(BlockId{i});
}

std::optional<BlockId> BlockPool::allocate() {
  if (num_empty_free() == 0) return std::nullopt;
  const BlockId id = first_free_;
  unlink_free(id);
  at(id).ref_count = 1;
  return id;
}

std::optional<BlockPool::Eviction> BlockPool::evict() {
  const BlockId id = first_cached_free_;
  if (id == kHole) return std::nullopt;
  unlink_free(id);
  const PrefixNodeId contents = std::exchange(at(id).contents, kNoPrefixNode);
  link_free(id);
  return Eviction{id, contents};
}

void BlockPool::add_reference(BlockId id) {
  Block& block = at(id);
  CHECK(block.ref_count > 0 || block.contents != kNoPrefixNode);
  if (block.ref_count == 0) unlink_free(id);
  ++block.ref_count;
}

void BlockPool::release(BlockId id) {
  Block& block = at(id);
  CHECK(block.ref_count > 0);
  if (--block.ref_count == 0) link_free(id);
}

void BlockPool::set_contents(BlockId id, PrefixNodeId contents) {
  Block& block = at(id);
  CHECK(block.ref_count > 0 && block.contents == kNoPrefixNode);
  block.contents = contents;
}

std::vector<BlockId> BlockPool::free_list() const {
  std::vector<BlockId> list;
  for (BlockId id = first_free_; id != kHole; id = at(id).next_free) list.push_back(id);
  return list;
}

// A block that caches something joins at the back, so the least recently freed is evicted first; an empty one
// joins at the front, so it is used before anything is evicted.
void BlockPool::link_free(BlockId id) {
  Block& block = at(id);
  const bool caches = block.contents != kNoPrefixNode;
  block.previous_free = caches ? last_free_ : kHole;
  block.next_free = caches ? kHole : first_free_;
  (block.previous_free == kHole ? first_free_ : at(block.previous_free).next_free) = id;
  (block.next_free == kHole ? last_free_ : at(block.next_free).previous_free) = id;
  if (caches && first_cached_free_ == kHole) first_cached_free_ = id;
  ++num_free_;
  num_cached_free_ += caches ? 1 : 0;
}

void BlockPool::unlink_free(BlockId id) {
  const Block& block = at(id);
  (block.previous_free == kHole ? first_free_ : at(block.previous_free).next_free) = block.next_free;
  (block.next_free == kHole ? last_free_ : at(block.next_free).previous_free) = block.previous_free;
  if (first_cached_free_ == id) first_cached_free_ = block.next_free;
  --num_free_;
  num_cached_free_ -= block.contents != kNoPrefixNode ? 1 : 0;
}

}  // namespace kvasir::kv
