#include "kv/cells/disk_copies.h"

#include <algorithm>

#include "base/check.h"

namespace kvasir::kv {

DiskCopies::DiskCopies(std::int64_t capacity_bytes, std::span<const std::int32_t> head_dims) {
  if (capacity_bytes >= CellArena::page_bytes(std::ranges::max(head_dims))) {
    arena_.emplace(capacity_bytes, head_dims);
  }
}

KvCellRef DiskCopies::keep(std::int32_t group, BlockId block, std::int32_t cell, std::int32_t cells_per_block,
                           KvFormat format, std::int32_t head_dim) {
  CHECK(is_enabled() && find(group, block, cell).is_gone());
  const auto copy = arena_->allocate(format, head_dim);
  if (!copy) return {};
  std::vector<KvCellRef>& copies = by_block_[key_of(group, block)];
  copies.resize(static_cast<std::size_t>(cells_per_block));
  return copies[static_cast<std::size_t>(cell)] = *copy;
}

KvCellRef DiskCopies::find(std::int32_t group, BlockId block, std::int32_t cell) const {
  const auto found = by_block_.find(key_of(group, block));
  return found == by_block_.end() ? KvCellRef{} : found->second[static_cast<std::size_t>(cell)];
}

void DiskCopies::forget(std::int32_t group, BlockId block, std::int32_t cell) {
  const auto found = by_block_.find(key_of(group, block));
  if (found == by_block_.end()) return;
  KvCellRef& copy = found->second[static_cast<std::size_t>(cell)];
  if (!copy.is_gone()) arena_->free(copy);
  copy = {};
  if (std::ranges::all_of(found->second, &KvCellRef::is_gone)) by_block_.erase(found);
}

void DiskCopies::forget(std::int32_t group, BlockId block) {
  const auto found = by_block_.find(key_of(group, block));
  if (found == by_block_.end()) return;
  for (const KvCellRef copy : found->second) {
    if (!copy.is_gone()) arena_->free(copy);
  }
  by_block_.erase(found);
}

}  // namespace kvasir::kv
