#include "kv/cells/cell_store.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/check.h"

namespace kvasir::kv {
namespace {

// At most a few MiB move at once.
constexpr std::int32_t kMaxMoves = 2048;

// References in a cache line: each cell's references begin with one.
constexpr std::int64_t kRefsPerLine = 64 / sizeof(KvCellRef);

std::vector<std::int32_t> head_dims_of(std::span<const CellStore::Group> groups) {
  std::vector<std::int32_t> head_dims;
  for (const CellStore::Group& group : groups) head_dims.push_back(group.head_dim);
  return head_dims;
}

}  // namespace

CellStore::CellStore(std::span<const Group> groups, KvFormat new_cells, std::int64_t capacity_bytes,
                     std::int32_t num_spare_pages)
    : new_cells_(new_cells), arena_(capacity_bytes, head_dims_of(groups), num_spare_pages) {
  for (const Group& group : groups) {
    const std::int64_t stride = ceil_div(std::int64_t{group.num_blocks}, kRefsPerLine) * kRefsPerLine;
    const std::int64_t num_refs = stride * group.cells_per_block;
    const auto bytes = num_refs * static_cast<std::int64_t>(sizeof(KvCellRef)) + stride * static_cast<std::int64_t>(sizeof(std::uint32_t));
    auto memory = AlignedBuffer::allocate(bytes, PageSize::kSmall);  // few of each cell's are in use
    if (!memory) throw std::bad_alloc();  // where even a thousandth of the cells' own is too much (ulimit -v)
    GroupCells& added = groups_.emplace_back(group.cells_per_block, group.head_dim, group.key_bases, stride, std::move(*memory));
    added.refs = reinterpret_cast<KvCellRef*>(added.memory.data());
    added.versions = reinterpret_cast<std::uint32_t*>(added.refs + num_refs);
  }
}

bool CellStore::fill(std::int32_t group, std::span<const BlockId> blocks, std::int32_t num_cells) {
  if (blocks.empty()) return true;
  GroupCells& of_group = groups_[static_cast<std::size_t>(group)];
  if (arena_.num_available(new_cells_, of_group.head_dim) < std::ssize(blocks) * num_cells) return false;
  for (const BlockId block : blocks) {
    of_group.num_touched_blocks = std::max(of_group.num_touched_blocks, index_of(block) + 1);
  }
  for (std::int32_t cell = 0; cell < num_cells; ++cell) {
    for (const BlockId block : blocks) {
      KvCellRef& added = ref(group, block, cell);
      CHECK(added.is_gone());
      added = *arena_.allocate(new_cells_, of_group.head_dim);
    }
  }
  return true;
}

// The target's memory may be what demotions freed, so these go first.
void CellStore::copy(std::int32_t group, BlockId from, BlockId to) {
  CHECK(!is_demoting_);
  conversions_.end_round();
  for (std::int32_t cell = 0; cell < cells_per_block(group); ++cell) {
    const KvCellRef source = at(group, from, cell), target = at(group, to, cell);
    CHECK(source.format() == target.format());
    conversions_.add({source, target, head_dim(group)});
  }
}

bool CellStore::has_room_for(std::span<const std::int32_t> num_blocks) const {
  wanted_.clear();
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const GroupCells& group = groups_[g];
    const std::int64_t num_cells = std::int64_t{num_blocks[g]} * group.cells_per_block;
    const auto same = std::ranges::find(wanted_, group.head_dim, &CellArena::Cells::head_dim);
    if (same == wanted_.end()) {
      wanted_.push_back({.format = new_cells_, .head_dim = group.head_dim, .num_cells = num_cells});
    } else {
      same->num_cells += num_cells;
    }
  }
  return arena_.has_room_for(wanted_);
}

void CellStore::clear(std::int32_t group, BlockId block) {
  for (std::int32_t i = 0; i < cells_per_block(group); ++i) {
    KvCellRef& cell = ref(group, block, i);
    if (!cell.is_gone()) arena_.free(cell);
    cell = {};
  }
}

void CellStore::begin_demotions() {
  CHECK(!is_demoting_);
  is_demoting_ = true;
  conversions_.end_round();  // what earlier demotions of this step left may be written to
  is_moving_ = arena_.close_sparse_pages(kMaxMoves);
}

bool CellStore::demote(std::int32_t group, BlockId block, std::int32_t cell, KvFormat to, std::int32_t logical_block) {
  KvCellRef& demoted = ref(group, block, cell);
  CHECK(is_demoting_ && !demoted.is_gone() && is_coarser(to, demoted.format()));
  const auto target = allocate_target(to, head_dim(group));
  if (!target) return false;
  conversions_.add({demoted, *target, head_dim(group), basis_of(group, cell), logical_block});
  left_behind_.push_back(demoted);
  demoted = *target;
  return true;
}

bool CellStore::copy_as(std::int32_t group, BlockId from, BlockId to, std::int32_t logical_block, std::span<const KvFormat> formats) {
  CHECK(is_demoting_ && std::ssize(formats) == cells_per_block(group));
  targets_.clear();
  for (const KvFormat format : formats) {
    const auto target = format == KvFormat::kGone ? KvCellRef{} : allocate_target(format, head_dim(group));
    if (!target) {
      for (const KvCellRef taken : targets_) {
        if (!taken.is_gone()) arena_.free(taken);
      }
      return false;
    }
    targets_.push_back(*target);
  }
  GroupCells& of_group = groups_[static_cast<std::size_t>(group)];
  of_group.num_touched_blocks = std::max(of_group.num_touched_blocks, index_of(to) + 1);
  for (std::int32_t cell = 0; cell < of_group.cells_per_block; ++cell) {
    KvCellRef& copy = ref(group, to, cell);
    CHECK(copy.is_gone());
    copy = targets_[static_cast<std::size_t>(cell)];
    if (!copy.is_gone()) conversions_.add({at(group, from, cell), copy, head_dim(group), basis_of(group, cell), logical_block});
  }
  block_copies_.push_back({group, from, to});
  return true;
}

// When nothing is free, what this round leaves behind is for the next.
std::optional<KvCellRef> CellStore::allocate_target(KvFormat format, std::int32_t head_dim) {
  auto target = arena_.allocate(format, head_dim);
  if (target || left_behind_.empty()) return target;
  begin_round();
  return arena_.allocate(format, head_dim);
}

void CellStore::begin_round() {
  conversions_.end_round();
  free_left_behind();
}

void CellStore::free_left_behind() {
  for (const KvCellRef cell : left_behind_) arena_.free(cell);
  left_behind_.clear();
}

void CellStore::drop(std::int32_t group, BlockId block, std::int32_t cell) {
  KvCellRef& dropped = ref(group, block, cell);
  CHECK(is_demoting_ && !dropped.is_gone());
  left_behind_.push_back(dropped);
  dropped = {};
}

bool CellStore::gather() {
  CHECK(is_demoting_);
  const std::int64_t reserved_before = arena_.reserved_bytes();
  begin_round();
  if (!is_moving_) is_moving_ = arena_.close_sparse_pages(kMaxMoves);
  if (is_moving_) {
    move_out_of_closed_pages();
    begin_round();
    arena_.reopen_pages();
    is_moving_ = false;
  }
  return arena_.reserved_bytes() < reserved_before;
}

void CellStore::end_demotions() {
  CHECK(is_demoting_);
  if (is_moving_) move_out_of_closed_pages();
  free_left_behind();
  if (is_moving_) arena_.reopen_pages();
  is_demoting_ = is_moving_ = false;
}

bool CellStore::move_out_of_closed_page(KvCellRef& ref, std::int32_t head_dim) {
  if (ref.is_gone() || !arena_.is_closed(ref)) return false;
  const auto target = arena_.allocate(ref.format(), head_dim);
  if (!target) return false;
  conversions_.add({ref, *target, head_dim});
  left_behind_.push_back(ref);
  ref = *target;
  return true;
}

// The owners of a page's cells are not recorded, so all of the directory is searched; a block that was
// demoted just now has left its closed page already, and a page closes before anything new comes into it.
void CellStore::move_out_of_closed_pages() {
  for (GroupCells& group : groups_) {
    for (std::int32_t cell = 0; cell < group.cells_per_block; ++cell) {
      const std::span of_cell(group.refs + cell * group.stride,
                              static_cast<std::size_t>(group.num_touched_blocks));
      for (std::size_t block = 0; block < of_cell.size(); ++block) {
        if (move_out_of_closed_page(of_cell[block], group.head_dim)) ++group.versions[block];
      }
    }
  }
}

std::int64_t CellStore::bytes(std::int32_t group, BlockId block) const {
  std::int64_t total = 0;
  for (std::int32_t cell = 0; cell < cells_per_block(group); ++cell) {
    total += cell_bytes(at(group, block, cell).format(), head_dim(group));
  }
  return total;
}

std::int64_t CellStore::new_block_bytes(std::int32_t group) const {
  return cells_per_block(group) * cell_bytes(new_cells_, head_dim(group));
}

}  // namespace kvasir::kv
