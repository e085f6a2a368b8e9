#include "kv/blocks/prefill_only_blocks.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace kvasir::kv {

PrefillOnlyBlocks::PrefillOnlyBlocks(const KvCacheConfig& config, BlockStore& blocks)
    : config_(config), blocks_(blocks), group_(roomiest_group(config)) {}

std::int32_t PrefillOnlyBlocks::roomiest_group(const KvCacheConfig& config) {
  const auto num_cells = [](const LayerGroup& group) {
    return std::int64_t{group.num_blocks} * group.cells_per_block;
  };
  return static_cast<std::int32_t>(std::ranges::max_element(config.groups, {}, num_cells) -
                                   config.groups.begin());
}

std::int32_t PrefillOnlyBlocks::num_blocks(std::int32_t group, std::int32_t num_tokens) const {
  return group == group_ ? ceil_div(blocks_for(num_tokens), layers_per_block(group)) : 0;
}

std::int32_t PrefillOnlyBlocks::max_tokens() const {
  if (!config_.has_equal_layers()) return 0;
  const LayerGroup& roomiest = config_.group(group_);
  const std::int64_t per_block = layers_per_block(group_);
  constexpr std::int64_t kMax = std::numeric_limits<std::int32_t>::max();
  const std::int64_t num_refs = cells().directory(group_).stride * roomiest.cells_per_block;
  // There are no 32-bit numbers for so many.
  if (num_refs > kMax || roomiest.num_block_ids() * per_block * kTokensPerBlock > kMax) return 0;
  return static_cast<std::int32_t>(roomiest.num_blocks * per_block * kTokensPerBlock);
}

std::int64_t PrefillOnlyBlocks::num_bytes(std::int32_t num_tokens) const {
  const LayerGroup& group = config_.group(group_);
  return std::int64_t{blocks_for(num_tokens)} * group.num_kv_heads *
         cell_bytes(config_.new_cells, group.head_dim);
}

bool PrefillOnlyBlocks::allocate(SequenceKv& kv, std::int32_t num_tokens) {
  const std::int32_t g = group_;
  missing_.assign(config_.groups.size(), 0);
  const std::int32_t num_blocks = this->num_blocks(g, num_tokens);
  missing_[static_cast<std::size_t>(g)] = num_blocks;
  if (num_blocks > blocks_.pool(g).num_free() || !blocks_.make_room(kv.owner, missing_)) return false;
  const std::int32_t per_block = layers_per_block(g), num_kv_heads = config_.group(g).num_kv_heads;
  // Read as cells of one layer, the directory has the next layer's so much further on.
  const auto layer_stride = static_cast<std::int32_t>(num_kv_heads * cells().directory(g).stride);
  std::int32_t num_left = blocks_for(num_tokens);
  BlockTable layer_table;
  layer_table.reserve(num_left);
  while (num_left > 0) {
    const std::int32_t num_used = std::min(num_left, per_block);
    const BlockId block = blocks_.take(kv.owner, g);
    CHECK(cells().fill(g, {&block, 1}, num_used * num_kv_heads));
    kv.table(g).append(block);
    for (std::int32_t i = 0; i < num_used; ++i) {
      layer_table.append(BlockId{index_of(block) + i * layer_stride});
    }
    num_left -= num_used;
  }
  kv.prefill_only_tables.assign(config_.groups.size(), layer_table);
  return true;
}

}  // namespace kvasir::kv
