// Where the KV of one sequence lives in one layer group.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kv/cells/cell.h"
#include "kvasir/ids.h"

namespace kvasir::kv {

// Maps logical blocks to pool blocks. Logical block i is for the absolute positions [16 i, 16 i + 16),
// whatever else was dropped: a block whose KV is gone leaves a hole and moves no position. Holds ids only;
// counting references is the cache manager's work.
//
// Thread safety: none.
// Invariants: first_held() is the lowest index without a hole, or size().
class BlockTable {
 public:
  // Logical length, holes included.
  std::int32_t size() const { return static_cast<std::int32_t>(blocks_.size()); }
  std::int32_t num_held() const { return num_held_; }
  std::int32_t first_held() const { return first_held_; }

  // By logical index; kHole where the KV is gone.
  std::span<const BlockId> blocks() const { return blocks_; }
  BlockId operator[](std::int32_t logical_index) const {
    return blocks_[static_cast<std::size_t>(logical_index)];
  }

  // The block of an absolute position, and the slot inside it.
  BlockId block_at(std::int32_t position) const { return (*this)[position / kTokensPerBlock]; }
  static constexpr std::int32_t slot_at(std::int32_t position) { return position % kTokensPerBlock; }

  void append(BlockId block);
  // Returns the block that was last. Requires: it is not a hole.
  BlockId pop_back();
  // Puts another block with the same contents at the index. Requires: neither is a hole.
  void replace(std::int32_t logical_index, BlockId block);
  // Returns the block that was there. Requires: it is not a hole.
  BlockId make_hole(std::int32_t logical_index);
  void reserve(std::int32_t num_blocks) { blocks_.reserve(static_cast<std::size_t>(num_blocks)); }

 private:
  std::vector<BlockId> blocks_;
  std::int32_t num_held_ = 0;
  std::int32_t first_held_ = 0;
};

}  // namespace kvasir::kv
