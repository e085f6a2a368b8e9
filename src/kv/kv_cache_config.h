// The properties of a KV cache.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "kv/blocks/layer_group.h"
#include "kv/blocks/siphash.h"
#include "kv/cells/cell_store.h"
#include "kv/policy/journal.h"
#include "kv/policy/policy.h"
#include "kvasir/ids.h"
#include "kvasir/result.h"

namespace kvasir::kv {

// Most ids of blocks in all groups together, kBlockIdsPerRoom for each block: positions of cells fit 32 bits.
inline constexpr std::int64_t kMaxBlockIds = std::numeric_limits<std::int32_t>::max() / (4 * kTokensPerBlock);

struct KvCacheConfig {
  std::vector<LayerGroup> groups;
  KvFormat new_cells = KvFormat::kF16;  // or kF32; every group's heads support it
  FormatCosts format_costs = usual_format_costs();
  bool prefix_cache = true;
  std::vector<std::vector<TokenId>> public_prefixes;
  // Tokens of a prompt that a step computes where nothing cuts it. A multiple of 16: sequences with a policy find what
  // those without one have cached. Others: they do not.
  std::int32_t prompt_chunk_tokens = 0;
  SipKey prefix_hash_key = {};         // random per process
  std::int32_t prefix_hash_bits = 64;  // fewer only in tests
  PolicyJournal* journal = nullptr;    // told what policies do; borrowed
  std::int32_t max_extra_pages = 64;   // of memory, for policies; fewer than they need only in tests

  // Error (kUsage) naming the field when a group has no block, a negative window, cells that are no multiple of its
  // KV heads, or heads that do not support the format; and when there is no group, or when groups without a window
  // have heads of several widths, which policies do not compare.
  Status validate() const;
  // Bytes of the memory behind the cells' offsets: room for every group's blocks in the format of new cells,
  // and a few pages for policies.
  std::int64_t memory_bytes() const;
  // Pages beyond those of new cells: two keep conversions going when all others are full, and one is for each
  // format that new cells can become, for its last page is not full.
  std::int32_t num_extra_pages() const;
  // Pages that are kept for the first round of conversions.
  std::int32_t num_spare_pages() const;
  const LayerGroup& group(std::int32_t index) const { return groups[static_cast<std::size_t>(index)]; }
  // Cells of a block over the groups without a window.
  std::int64_t num_full_cells() const;
  // The first group without a window, or the first one; all without a window have heads as wide.
  const LayerGroup& full_group() const;
  std::int32_t full_head_dim() const { return full_group().head_dim; }
  std::int32_t widest_head_dim() const;
  // Whether all groups have as many KV heads, as wide.
  bool has_equal_layers() const;
  std::int32_t num_groups() const { return static_cast<std::int32_t>(groups.size()); }
};

}  // namespace kvasir::kv
