// One sequence's hold on the cache.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "kv/blocks/block_table.h"
#include "kv/blocks/prefix_index.h"
#include "kv/cells/sequence_scores.h"
#include "kv/policy/bytes_use.h"
#include "kv/policy/journal.h"
#include "kv/policy/policy.h"
#include "kvasir/ids.h"

namespace kvasir::kv {

// The demotion of a shared block's cells that a sequence's policy asks for, until all holders agree.
struct PendingDemotion {
  std::int32_t logical_block = 0;
  // [cells_per_block]; towards the format of new cells where nothing is asked for.
  std::vector<CellAction> cells;
};

// Made by KvCacheManager::open(), given back by free(). Empty: holds nothing.
struct SequenceKv {
  std::vector<BlockTable> tables;  // one per layer group
  // For a sequence that runs layer by layer, one per layer group and all alike: its layer blocks by position.
  std::vector<BlockTable> prefill_only_tables;
  // How far its full blocks are known to the prefix index; kNoPrefixNode when they never shall be.
  PrefixNodeId cursor = kNoPrefixNode;
  std::int32_t num_indexed_blocks = 0;
  std::int32_t num_public_blocks = 0;  // the first ones, which the cursor meets in a namespace of their own
  PrefixNodeId tenant_root = kNoPrefixNode;  // where it goes on behind them
  CacheOwner owner = kAnyOwner;              // of its blocks
  std::int32_t num_computed_tokens = 0;      // as of the last commit()
  std::int32_t num_prompt_tokens = 0;        // 0: open() was not told
  std::int32_t num_found_blocks = 0;         // that match_prefix() took
  // A sequence with a policy finds blocks of those without one here, and goes on there behind the public ones. kNoPrefixNode: not for it.
  PrefixNodeId exact_root = kNoPrefixNode, exact_tenant_root = kNoPrefixNode;
  // By group without a window, rising: its logical blocks that belong to sequences without a policy. They do not
  // change; before one would, the sequence gets copies of all of them.
  std::vector<std::vector<std::int32_t>> borrowed;
  bool has_borrowed = false;  // some, at some time
  // Its attention is kept with the exact prefix at the end of each whole chunk up to here; with a policy no further than
  // it leaves cells as computed.
  std::int32_t record_end_tokens = 0;
  std::int32_t num_recorded_tokens = 0;  // so far
  KvPolicySettings policy;
  bool is_frozen = false;  // its policy does nothing any more; what it has done stays
  std::int32_t num_planned_blocks = 0;  // full blocks that the policy has seen
  // One per layer group, written as steps run; empty where the policy has no memory of attention.
  std::vector<SequenceScores> scores;
  std::map<std::pair<std::int32_t, BlockId>, PendingDemotion> pending_demotions;  // by group and block
  BytesUse bytes_use;
  KvHolder holder;        // for a journal; its opener may set it
  HoldId hold = kNoHold;  // the journal's name for it, from the first step of its policy on

  BlockTable& table(std::int32_t group) { return tables[static_cast<std::size_t>(group)]; }
  const BlockTable& table(std::int32_t group) const { return tables[static_cast<std::size_t>(group)]; }
  std::span<const std::int32_t> borrowed_blocks(std::int32_t group) const {
    if (borrowed.empty()) return {};
    return borrowed[static_cast<std::size_t>(group)];
  }
  bool is_borrowing() const {
    return std::ranges::any_of(borrowed, [](const auto& of_group) { return !of_group.empty(); });
  }
};

}  // namespace kvasir::kv
