#include "kv/blocks/block_table.h"

#include <algorithm>

#include "base/check.h"

namespace kvasir::kv {

void BlockTable::append(BlockId block) {
  const bool is_leading_hole = block == kHole && first_held_ == size();
  blocks_.push_back(block);
  if (block != kHole) ++num_held_;
  if (is_leading_hole) ++first_held_;
}

BlockId BlockTable::pop_back() {
  const BlockId block = blocks_.back();
  CHECK(block != kHole);
  blocks_.pop_back();
  --num_held_;
  first_held_ = std::min(first_held_, size());
  return block;
}

void BlockTable::replace(std::int32_t logical_index, BlockId block) {
  CHECK(block != kHole && (*this)[logical_index] != kHole);
  blocks_[static_cast<std::size_t>(logical_index)] = block;
}

BlockId BlockTable::make_hole(std::int32_t logical_index) {
  const BlockId block = (*this)[logical_index];
  CHECK(block != kHole);
  blocks_[static_cast<std::size_t>(logical_index)] = kHole;
  --num_held_;
  while (first_held_ < size() && (*this)[first_held_] == kHole) ++first_held_;
  return block;
}

}  // namespace kvasir::kv
