#include "kv/cell_store.h"

#include "base/check.h"
#include "base/checked_math.h"

namespace kvasir::kv {

std::int64_t CellStore::bytes_for(std::span<const Group> groups, KvFormat new_cells, std::int32_t head_dim) {
  std::int64_t num_cells = 0;
  for (const Group& group : groups) num_cells += std::int64_t{group.num_blocks} * group.cells_per_block;
  const std::int64_t page_bytes = CellArena::page_bytes(head_dim);
  return ceil_div(num_cells, page_bytes / cell_bytes(new_cells, head_dim)) * page_bytes;
}

CellStore::CellStore(std::span<const Group> groups, KvFormat new_cells, std::int32_t head_dim,
                     std::int64_t capacity_bytes)
    : head_dim_(head_dim), new_cells_(new_cells), arena_(capacity_bytes, head_dim) {
  for (const Group& group : groups) {
    groups_.push_back(
        {group.cells_per_block, std::vector<KvCellRef>(static_cast<std::size_t>(group.num_blocks) *
                                                       static_cast<std::size_t>(group.cells_per_block))});
  }
}

bool CellStore::fill(std::int32_t group, BlockId block, std::int32_t num_cells) {
  if (arena_.num_available(new_cells_) < num_cells) return false;
  for (KvCellRef& cell : cells(group, block).first(static_cast<std::size_t>(num_cells))) {
    CHECK(cell.is_gone());
    cell = *arena_.allocate(new_cells_);
  }
  return true;
}

void CellStore::clear(std::int32_t group, BlockId block) {
  CHECK(!is_demoting_);
  for (KvCellRef& cell : cells(group, block)) {
    if (!cell.is_gone()) arena_.free(cell);
    cell = {};
  }
}

void CellStore::begin_demotions() {
  CHECK(!is_demoting_);
  is_demoting_ = true;
}

bool CellStore::demote(std::int32_t group, BlockId block, std::int32_t cell, KvFormat to) {
  KvCellRef& ref = cells(group, block)[static_cast<std::size_t>(cell)];
  CHECK(is_demoting_ && !ref.is_gone() && to > ref.format());
  const auto target = arena_.allocate(to);
  if (!target) return false;
  conversions_.push_back({ref, *target});
  left_behind_.push_back(ref);
  ref = *target;
  return true;
}

void CellStore::drop(std::int32_t group, BlockId block, std::int32_t cell) {
  KvCellRef& ref = cells(group, block)[static_cast<std::size_t>(cell)];
  CHECK(is_demoting_ && !ref.is_gone());
  left_behind_.push_back(ref);
  ref = {};
}

void CellStore::end_demotions() {
  CHECK(is_demoting_);
  for (const KvCellRef cell : left_behind_) arena_.free(cell);
  left_behind_.clear();
  is_demoting_ = false;
}

std::int64_t CellStore::bytes(std::int32_t group, BlockId block) const {
  std::int64_t total = 0;
  for (std::int32_t cell = 0; cell < cells_per_block(group); ++cell) {
    total += cell_bytes(at(group, block, cell).format(), head_dim_);
  }
  return total;
}

std::int64_t CellStore::new_block_bytes(std::int32_t group) const {
  return cells_per_block(group) * cell_bytes(new_cells_, head_dim_);
}

}  // namespace kvasir::kv
