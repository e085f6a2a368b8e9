// Layers of one attention kind. They share block tables, because they keep and drop the same positions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "kv/cells/cell.h"

namespace kvasir::kv {

struct ForecastNetwork;
class KeyBases;

// For a budget of 5%.
inline constexpr std::int32_t kBlockIdsPerRoom = 20;

// The token at position p attends to the keys at positions > p - window_tokens (all of them when 0), itself
// included.
struct LayerGroup {
  std::int32_t num_blocks = 0;       // that its share of the memory holds in the format of new cells
  std::int32_t window_tokens = 0;    // 0: full attention
  std::int32_t cells_per_block = 1;  // layers times KV heads
  std::int32_t num_kv_heads = 1;     // cells of one layer
  std::int32_t head_dim = 64;        // of its keys and values
  // By cell: how much the model suffers when attention to it is wrong, the mean being 1. Empty: all alike.
  std::vector<float> cell_weights = {};
  // The forecast of later attention, for that many cells. Null: nothing was learned.
  std::shared_ptr<const ForecastNetwork> network = nullptr;
  // Of its cells' keys. Null: no cell has its keys in components.
  std::shared_ptr<const KeyBases> key_bases = nullptr;

  bool is_full() const { return window_tokens == 0; }

  // Ids in its pool: a block of coarse cells takes less than its share of the memory, so there are more
  // blocks than there is room for new ones. Those of a window are gone before they are worth making coarser.
  std::int32_t num_block_ids() const { return is_full() ? kBlockIdsPerRoom * num_blocks : num_blocks; }

  // The first logical block that the token at `position`, or any later one, reads.
  std::int32_t first_needed_block(std::int32_t position) const {
    if (is_full()) return 0;
    return std::max(0, position - window_tokens + 1) / kTokensPerBlock;
  }

  // The most blocks that a sequence of `num_tokens` holds at once when it runs at most `max_chunk_tokens` a
  // step.
  std::int32_t peak_blocks(std::int32_t num_tokens, std::int32_t max_chunk_tokens) const {
    const std::int32_t all_blocks = blocks_for(num_tokens);
    if (is_full()) return all_blocks;
    // A chunk sees the window before its first token; wherever it starts, that many positions touch at most
    // one block more than their count divided by 16.
    const std::int64_t positions = std::int64_t{window_tokens} + max_chunk_tokens - 1;
    return static_cast<std::int32_t>(
        std::min<std::int64_t>(all_blocks, ceil_div<std::int64_t>(positions - 1, kTokensPerBlock) + 1));
  }
};

}  // namespace kvasir::kv
