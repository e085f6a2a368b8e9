// Which cells the blocks of every layer group have, in which formats, and where they lie.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/aligned_buffer.h"
#include "kv/cells/cell.h"
#include "kv/cells/cell_arena.h"
#include "kv/cells/cell_conversions.h"
#include "kv/cells/key_basis.h"
#include "kvasir/ids.h"

namespace kvasir::kv {

// Owns the directory that attention reads cells by. A block that holds KV has a cell per layer and KV head of
// its group, all in the format of new cells at first; each may then become coarser or go.
//
// Demotions are planned together, between begin_demotions() and end_demotions(). Their old places are used
// when nothing else is free, and that ends a round of conversions: no conversion writes where another one of
// its round reads. A few pages are spare, which only demotions may take, so that a full memory can become
// coarser. Where memory is scarce, cells of sparse pages move together at the same time, and in rounds of
// their own where what stays as it is keeps pages from running empty.
//
// Thread safety: none; the engine thread is the only caller.
// Invariants: a block without KV has no cells; bytes(group, block) is the sum over its cells.
class CellStore {
 public:
  struct Group {
    std::int32_t num_blocks = 0;  // ids
    std::int32_t cells_per_block = 1;
    std::int32_t head_dim = 64;
    const KeyBasis* key_bases = nullptr;  // by cell, borrowed; null: no cell has keys in components
  };

  // Requires: capacity_bytes of a page and the spare ones.
  CellStore(std::span<const Group> groups, KvFormat new_cells, std::int64_t capacity_bytes,
            std::int32_t num_spare_pages);

  // Gives blocks without cells their first num_cells. False, and nothing changed, when there is no room. The
  // blocks' first cells come first, then their second ones: attention reads one layer and head of block after
  // block, and a processor fetches ahead by itself what lies in a row.
  bool fill(std::int32_t group, std::span<const BlockId> blocks, std::int32_t num_cells);
  // One block; all of its cells.
  bool fill(std::int32_t group, BlockId block) { return fill(group, {&block, 1}, cells_per_block(group)); }
  // Takes them all. Among demotions only of a block that these leave alone.
  void clear(std::int32_t group, BlockId block);

  // Writes the cells of a block of the same group into those of another one, which has them all, with the conversions to
  // come. Not among demotions.
  void copy(std::int32_t group, BlockId from, BlockId to);

  void begin_demotions();
  // Gives a block of the same group that has no cells those of `from`, in these formats by cell, none of which is
  // finer. False, and nothing changed, when there is no room. Among demotions; `from` stays as it is, the logical_block-th
  // of its sequence.
  bool copy_as(std::int32_t group, BlockId from, BlockId to, std::int32_t logical_block, std::span<const KvFormat> formats);
  // Makes a cell of the logical_block-th block of a sequence coarser; false when there is no room for it, in what earlier
  // demotions left behind either.
  // Requires: `to` is coarser than what it is, it is not gone, and it was not demoted since
  // begin_demotions().
  bool demote(std::int32_t group, BlockId block, std::int32_t cell, KvFormat to, std::int32_t logical_block);
  void drop(std::int32_t group, BlockId block, std::int32_t cell);
  // For demotions that found no room: moves cells of sparse pages together now. False when that frees no
  // page.
  bool gather();
  void end_demotions();
  // Cells that were demoted and moved since the last call.
  const CellConversions& conversions() const { return conversions_; }
  struct BlockCopy {
    std::int32_t group = 0;
    BlockId from{}, to{};
  };
  // Blocks that they make of others.
  std::span<const BlockCopy> block_copies() const { return block_copies_; }
  void clear_conversions() {
    conversions_.clear();
    block_copies_.clear();
  }

  KvCellRef at(std::int32_t group, BlockId block, std::int32_t cell) const {
    return directory(group).at(block, cell);
  }
  // Stays where it is.
  CellDirectory directory(std::int32_t group) const {
    const GroupCells& of_group = groups_[static_cast<std::size_t>(group)];
    return {of_group.refs, of_group.stride, of_group.versions};
  }
  // Bytes that the cells of a block take.
  std::int64_t bytes(std::int32_t group, BlockId block) const;
  std::int64_t new_block_bytes(std::int32_t group) const;
  KvFormat new_cells() const { return new_cells_; }
  // Whether fill() has room for so many blocks of each group, all of their cells.
  bool has_room_for(std::span<const std::int32_t> num_blocks) const;
  std::int32_t cells_per_block(std::int32_t group) const {
    return groups_[static_cast<std::size_t>(group)].cells_per_block;
  }
  // Whether cells of the group may have their keys in components.
  bool has_key_bases(std::int32_t group) const { return groups_[static_cast<std::size_t>(group)].key_bases != nullptr; }
  // Width of the heads of a group.
  std::int32_t head_dim(std::int32_t group) const { return groups_[static_cast<std::size_t>(group)].head_dim; }
  const CellArena& arena() const { return arena_; }

 private:
  struct GroupCells {
    std::int32_t cells_per_block;
    std::int32_t head_dim;
    const KeyBasis* key_bases;  // or null
    std::int64_t stride;
    AlignedBuffer memory;                 // zero, so gone, and untouched until a block is used
    KvCellRef* refs;                      // [cells_per_block][stride], by block id
    std::uint32_t* versions;              // [stride], behind `refs` in `memory`
    std::int32_t num_touched_blocks = 0;  // ids from here on never had cells
  };
  // To be written.
  KvCellRef& ref(std::int32_t group, BlockId block, std::int32_t cell) {
    const GroupCells& of_group = groups_[static_cast<std::size_t>(group)];
    ++of_group.versions[index_of(block)];
    return of_group.refs[cell * of_group.stride + index_of(block)];
  }
  const KeyBasis* basis_of(std::int32_t group, std::int32_t cell) const {
    const KeyBasis* const bases = groups_[static_cast<std::size_t>(group)].key_bases;
    return bases == nullptr ? nullptr : bases + cell;
  }
  std::optional<KvCellRef> allocate_target(KvFormat format, std::int32_t head_dim);
  void free_left_behind();
  void begin_round();
  // False: it stays where it is.
  bool move_out_of_closed_page(KvCellRef& ref, std::int32_t head_dim);
  void move_out_of_closed_pages();

  const KvFormat new_cells_;
  std::vector<GroupCells> groups_;
  CellArena arena_;
  CellConversions conversions_;
  std::vector<BlockCopy> block_copies_;
  std::vector<KvCellRef> targets_;      // of copy_as(), kept for its memory
  std::vector<KvCellRef> left_behind_;  // by demotions of this round
  mutable std::vector<CellArena::Cells> wanted_;  // of has_room_for(), of each width together; kept for its memory
  bool is_demoting_ = false;
  bool is_moving_ = false;  // pages of the arena are closed
};

}  // namespace kvasir::kv
