// Carries out what KV policies decide: cells become coarser, go, or come back.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "kv/blocks/block_store.h"
#include "kv/kv_cache_config.h"
#include "kv/policy/policy.h"
#include "kv/policy/policy_recorder.h"
#include "kv/sequence_kv.h"

namespace kvasir::kv {

// Calls come together, between begin() and end(); no sequence is freed or grows between them, but cached blocks
// may be evicted to make room. A shared block changes by agreement: each holder's demotion of it is pending
// until all holders have one. Blocks that a sequence has borrowed from those without a policy never change: before one
// would, the sequence gets copies of all of them.
//
// Thread safety: none; the engine thread is the only caller.
class Demotion {
 public:
  // All are borrowed.
  Demotion(const KvCacheConfig& config, BlockStore& blocks, PolicyRecorder& recorder);

  void begin() { cells().begin_demotions(); }
  // Asks the sequence's policy, now that num_computed_tokens are stored, and does what it says.
  void demote(SequenceKv& kv, std::int32_t num_computed_tokens, std::int32_t num_prompt_tokens);
  // After the demote() calls: shared blocks that every holder would demote become as coarse as the most careful
  // holder allows. `holders` are all sequences that may have pending demotions.
  void demote_shared(std::span<SequenceKv* const> holders);
  void end();
  // The policy of `kv` does nothing any more: its cells stay as they are, and it agrees to no demotion of shared blocks.
  // Outside of begin() and end().
  static void freeze(SequenceKv& kv);

  // Whether the policy of `kv` may do anything once so many full blocks are computed and none of them is coarse.
  bool may_act_on(const SequenceKv& kv, std::int32_t num_full_blocks) const;

  // The KV of the sequence in the layers without a window, as it is now.
  KvUsage measure(const SequenceKv& kv, std::int32_t num_prompt_tokens) const;

 private:
  CellStore& cells() { return blocks_.cells(); }
  const CellStore& cells() const { return blocks_.cells(); }
  void demote_group(SequenceKv& kv, std::int32_t group, std::int32_t first_cell, const PolicyView& view);
  PolicyView view_of(const SequenceKv& kv, std::int32_t group, std::span<const BlockId> blocks,
                     std::int32_t num_full_blocks, std::int32_t num_prompt_tokens) const;
  bool copy_borrowed(SequenceKv& kv, std::int32_t group);
  void give_up_copies(std::int32_t group);
  void use_copies(SequenceKv& kv, std::int32_t group);
  bool carry_out(SequenceKv& kv, std::int32_t group, const PolicyView& view, const CellAction& action);
  bool make_coarser(std::int32_t group, BlockId block, std::int32_t logical_block, std::int32_t cell, KvFormat to);
  bool apply_agreed(std::int32_t group, BlockId block, std::int32_t logical_block, std::span<const KvFormat> formats,
                    std::span<SequenceKv* const> holders);
  void postpone(SequenceKv& kv, std::int32_t group, BlockId block, const CellAction& action);

  const KvCacheConfig& config_;
  BlockStore& blocks_;
  PolicyRecorder& recorder_;
  std::int64_t num_full_cells_ = 0;  // of a block over the groups without a window
  std::vector<CellAction> actions_;  // of demote(), kept for its memory
  std::vector<BlockId> copies_;      // of the first borrowed blocks, likewise
  std::vector<KvFormat> formats_;    // of a copy, likewise
  std::vector<std::pair<std::int32_t, BlockId>> copied_;  // given back when demotions end, by group
};

}  // namespace kvasir::kv
