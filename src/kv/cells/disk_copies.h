// Which cells have a copy on disk, in which format, and where in the file it lies.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "kv/cells/cell.h"
#include "kv/cells/cell_arena.h"
#include "kvasir/ids.h"

namespace kvasir::kv {

// Shares out a file of a fixed size to the bytes that cells had before they became ghosts. Bookkeeping only:
// the runtime owns the file. A copy's reference counts its offset from the beginning of the file. It costs
// kBytesPerCell for the cells of blocks that have a copy.
//
// Thread safety: none; the engine thread is the only caller.
// Invariant: used_bytes() is the sum of the sizes of the copies that there are.
class DiskCopies {
 public:
  static constexpr std::int64_t kBytesPerCell = sizeof(KvCellRef);

  // Keeps nothing when there is room for less than a page of an arena.
  // `head_dims`: of the cells that it will have.
  DiskCopies(std::int64_t capacity_bytes, std::span<const std::int32_t> head_dims);

  bool is_enabled() const { return arena_.has_value(); }
  // A place for a cell's bytes in a format; gone when the file has none. Requires: is_enabled(), the cell,
  // one of `cells_per_block`, has no copy.
  KvCellRef keep(std::int32_t group, BlockId block, std::int32_t cell, std::int32_t cells_per_block,
                 KvFormat format, std::int32_t head_dim);
  // Gone when there is none.
  KvCellRef find(std::int32_t group, BlockId block, std::int32_t cell) const;
  // The places of one cell's copy, or of all of a block's, if they have any, may be used again.
  void forget(std::int32_t group, BlockId block, std::int32_t cell);
  void forget(std::int32_t group, BlockId block);

  std::int64_t capacity_bytes() const { return arena_ ? arena_->capacity_bytes() : 0; }
  std::int64_t used_bytes() const { return arena_ ? arena_->used_bytes() : 0; }

 private:
  static std::uint64_t key_of(std::int32_t group, BlockId block) {
    return static_cast<std::uint64_t>(group) << 32 | static_cast<std::uint32_t>(index_of(block));
  }

  std::optional<CellArena> arena_;
  std::unordered_map<std::uint64_t, std::vector<KvCellRef>> by_block_;
};

}  // namespace kvasir::kv
