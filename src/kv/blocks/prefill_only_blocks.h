// KV of sequences that run layer by layer: all layers take turns in the memory of one.
#pragma once

#include <cstdint>
#include <vector>

#include "kv/blocks/block_store.h"
#include "kv/kv_cache_config.h"
#include "kv/sequence_kv.h"

namespace kvasir::kv {

// The cells that a block of group() has for its layers serve as many *layer blocks*: 16 tokens each, of
// whichever layer runs. No cell is taken that no layer block needs. Layer block i of block b is number b times
// the group's layers plus i, which is also how the group's directory counts, read as blocks of num_kv_heads
// cells.
//
// Thread safety: none; the engine thread is the only caller.
class PrefillOnlyBlocks {
 public:
  // Both are borrowed.
  PrefillOnlyBlocks(const KvCacheConfig& config, BlockStore& blocks);

  // Makes room for the KV of `num_tokens` tokens in one layer. False, and `kv` unchanged, when there is none.
  // Requires: `kv` is fresh.
  bool allocate(SequenceKv& kv, std::int32_t num_tokens);
  // The group whose blocks are taken: the one that has room for the most tokens.
  std::int32_t group() const { return group_; }
  // Blocks of a group, and bytes, that allocate() takes.
  std::int32_t num_blocks(std::int32_t group, std::int32_t num_tokens) const;
  std::int64_t num_bytes(std::int32_t num_tokens) const;
  // None where groups differ in the size of a layer's KV: such models run all layers.
  std::int32_t max_tokens() const;

 private:
  static std::int32_t roomiest_group(const KvCacheConfig& config);
  CellStore& cells() { return blocks_.cells(); }
  const CellStore& cells() const { return blocks_.cells(); }
  std::int32_t layers_per_block(std::int32_t group) const {
    return cells().cells_per_block(group) / config_.group(group).num_kv_heads;
  }

  const KvCacheConfig& config_;
  BlockStore& blocks_;
  const std::int32_t group_;
  std::vector<std::int32_t> missing_;  // of allocate(), by group; kept for its memory
};

}  // namespace kvasir::kv
