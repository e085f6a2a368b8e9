// Which blocks a sequence may use: allocation, prefix hits, sharing, sliding windows.
#pragma once

#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kv/blocks/block_store.h"
#include "kv/blocks/prefill_only_blocks.h"
#include "kv/blocks/public_prefixes.h"
#include "kv/kv_cache_config.h"
#include "kv/policy/demotion.h"
#include "kv/policy/policy_recorder.h"
#include "kv/sequence_kv.h"
#include "kv/stats.h"
#include "kvasir/ids.h"

namespace kvasir::kv {

// The requests that may find a sequence's blocks in the prefix cache.
struct CacheScope {
  // A namespace alone, as most callers have it.
  template <std::convertible_to<std::string_view> Name>
  CacheScope(const Name& name) : cache_namespace(name) {}  // NOLINT(google-explicit-constructor)
  CacheScope(std::string_view name, std::string_view owner, std::span<const TokenId> prompt_token_ids)
      : cache_namespace(name), tenant(owner), prompt(prompt_token_ids) {}

  std::string_view cache_namespace;
  std::string_view tenant = {};          // in whose share of the cache it counts
  std::span<const TokenId> prompt = {};  // which may begin with something public
};

// Block bookkeeping for all layer groups of a model. Knows tokens, positions and block ids; knows nothing of
// requests, of scheduling or of the memory behind the blocks.
//
// Every change is all or nothing over the groups. A registered block in a table is always the block that the
// index names for its contents, so equal prefixes computed twice are kept once.
//
// Thread safety: none; the engine thread is the only caller.
class KvCacheManager {
 public:
  // Requires: config.validate() holds.
  explicit KvCacheManager(KvCacheConfig config);
  KvCacheManager(const KvCacheManager&) = delete;
  KvCacheManager& operator=(const KvCacheManager&) = delete;

  // An empty hold for a sequence that shares KV inside its scope only. Without `use_prefix_cache` it neither
  // finds cached blocks nor leaves any behind; it shares with others of the same policy alone.
  // `expected_tokens` sizes its tables once.
  SequenceKv open(const CacheScope& scope, bool use_prefix_cache, std::int32_t expected_tokens,
                  const KvPolicySettings& policy = {});

  // Takes the longest cached prefix of `tokens` that leaves at least one token to compute, and returns its
  // length in tokens (a multiple of 16). Full groups need each of its blocks, window groups those that the
  // next token can still see. Requires: `kv` is fresh from open().
  std::int32_t match_prefix(SequenceKv& kv, std::span<const TokenId> tokens);
  // match_prefix() will find only what sequences with the same policy have cached. Requires: `kv` is fresh from open().
  void borrow_nothing(SequenceKv& kv);
  // Lets the policy of `kv` do to the prefix that match_prefix() has just taken as it would have, had `kv` computed it.
  // Nothing else is demoted meanwhile, and the step to come has not begun.
  void act_on_found_prefix(SequenceKv& kv);
  // The blocks that match_prefix() took are of use, which makes them worth keeping: `kv` runs, for the first
  // time.
  void count_hits(const SequenceKv& kv);

  // Shares the full blocks of the first `num_tokens` that `from` holds and has computed, without the prefix
  // index; returns the tokens shared (a multiple of 16), 0 when `from` has slid past them. Requires: `to` is
  // fresh.
  std::int32_t share_prefix(const SequenceKv& from, SequenceKv& to, std::int32_t num_tokens);

  // Gives `to` the KV of the first `num_tokens` that `from` holds: shares its full blocks and has the last one copied with
  // the conversions to come. Returns how many tokens `to` has: a multiple of 16 where there is no room for that copy, 0 as
  // share_prefix(). Requires: `to` is fresh; no policy acts on either.
  std::int32_t fork(const SequenceKv& from, SequenceKv& to, std::int32_t num_tokens);

  // Makes room for the KV of positions below `num_tokens` in every group. False, and `kv` unchanged, when a
  // pool or the memory is exhausted: the scheduler preempts, no error is logged.
  bool allocate(SequenceKv& kv, std::int32_t num_tokens);

  // As allocate() for as many of the positions as there are empty blocks and unused memory for: nothing that
  // is cached goes. Returns below which position there is room now; all that allocate() made stays.
  std::int32_t allocate_empty(SequenceKv& kv, std::int32_t num_tokens);
  // Gives back the blocks behind those of the first `num_tokens` positions, which are not computed.
  void trim(SequenceKv& kv, std::int32_t num_tokens);

  // The KV of the first `num_computed_tokens` of `tokens` is now stored: makes the full blocks findable and
  // frees what left the windows.
  void commit(SequenceKv& kv, std::span<const TokenId> tokens, std::int32_t num_computed_tokens);

  // The runtime has written the cells anew that were to be.
  void forget_conversions() { blocks_.cells().clear_conversions(); }

  // Gives everything back, last block first, so that shared heads outlive their tails. `kv` is empty
  // afterwards.
  void free(SequenceKv& kv);

  // Block ids that `kv` still lacks in a group to reach `num_tokens`, running at most `max_chunk_tokens` a
  // step.
  std::int32_t blocks_missing(const SequenceKv& kv, std::int32_t group, std::int32_t num_tokens,
                              std::int32_t max_chunk_tokens) const;
  // The memory for them: new cells of the last chunk, and what the policy is expected to leave of the rest.
  std::int64_t bytes_missing(const SequenceKv& kv, std::int32_t num_tokens,
                             std::int32_t max_chunk_tokens) const;
  // Memory that no sequence holds; some of it may be cached.
  std::int64_t free_bytes() const { return blocks_.free_bytes(); }
  // The longest sequence that fits when it has the cache to itself.
  std::int32_t max_sequence_tokens(std::int32_t max_chunk_tokens) const;

  std::int32_t num_groups() const { return config_.num_groups(); }
  const LayerGroup& group(std::int32_t index) const { return config_.group(index); }
  const BlockPool& pool(std::int32_t group) const { return blocks_.pool(group); }
  const PrefixIndex& prefix_index() const { return blocks_.index(); }
  bool has_prefix_cache() const { return config_.prefix_cache; }
  const CellStore& cells() const { return blocks_.cells(); }
  // Sequences whose policy acts, between update and schedule of a step.
  Demotion& demotion() { return demotion_; }
  const Demotion& demotion() const { return demotion_; }
  // Sequences that run layer by layer.
  PrefillOnlyBlocks& prefill_only() { return prefill_only_; }
  const PrefillOnlyBlocks& prefill_only() const { return prefill_only_; }
  // Bytes of the cells that sequences hold; the rest of the bytes in use is cached.
  std::int64_t held_bytes() const { return blocks_.held_bytes(); }
  KvStats stats() const;
  std::int64_t num_evictions() const { return blocks_.num_evictions(); }

 private:
  void count_missing(const SequenceKv& kv, std::int32_t num_blocks);
  void append_fresh(SequenceKv& kv, std::int32_t num_blocks);
  std::int32_t longest_usable_prefix(std::span<const PrefixNodeId> nodes);
  template <class BlockOf>  // of (group, logical index)
  void take_prefix(SequenceKv& kv, std::int32_t num_blocks, BlockOf block_of);
  // A cursor for the beginning, and one for what the tenant alone has behind public blocks; kNoPrefixNode where there
  // are none.
  std::pair<PrefixNodeId, PrefixNodeId> open_roots(const CacheScope& scope, std::uint64_t fingerprint);
  void open_cursor(SequenceKv& kv, const CacheScope& scope);
  void open_exact_roots(SequenceKv& kv, const CacheScope& scope);
  void find_path(const SequenceKv& kv, PrefixNodeId root, PrefixNodeId tenant_root, std::span<const TokenId> tokens);
  void record_attention(SequenceKv& kv, std::span<const TokenId> tokens, std::int32_t num_computed_tokens);
  BlockId last_exact_block(const SequenceKv& kv, std::span<const TokenId> tokens, std::int32_t num_tokens);
  static void stop_recording(SequenceKv& kv);
  void go_on_recording(SequenceKv& kv, std::int32_t num_found_tokens);
  std::int32_t borrow_exact_prefix(SequenceKv& kv, std::span<const TokenId> tokens, std::int32_t num_own_blocks);
  std::int32_t last_shared_chunk_end(const SequenceKv& kv, std::int32_t num_tokens) const;
  CacheOwner owner_of(std::string_view tenant);
  void leave_public_prefix(SequenceKv& kv);
  void index_block(SequenceKv& kv, std::int32_t logical_index);
  void stop_indexing(SequenceKv& kv);
  void remember_attention(SequenceKv& kv, const AttentionMemory& memory, std::int32_t expected_tokens) const;
  CachedContents contents_of(const SequenceKv& kv, std::int32_t group, std::int32_t logical_index) const;
  void slide(SequenceKv& kv, std::int32_t next_position);

  const KvCacheConfig config_;
  BlockStore blocks_;
  const PublicPrefixes public_prefixes_;
  std::map<std::string, CacheOwner, std::less<>> owners_;  // by tenant
  PolicyRecorder recorder_;
  Demotion demotion_;
  PrefillOnlyBlocks prefill_only_;
  std::vector<PrefixNodeId> path_;         // of match_prefix(), kept for its memory
  std::vector<std::int32_t> run_lengths_;  // per group: cached blocks in a row; likewise
  std::vector<std::int32_t> missing_;      // of allocate(), per group; likewise
  std::vector<BlockId> fresh_;             // of allocate(); likewise
  std::int64_t num_deduplicated_ = 0;
  std::int64_t num_borrowed_tokens_ = 0;
  AttentionMemory recorded_memory_;  // that the last policy wanted
};

// References the first blocks of another sequence, as far as the next token still sees them.
template <class BlockOf>
void KvCacheManager::take_prefix(SequenceKv& kv, std::int32_t num_blocks, BlockOf block_of) {
  for (std::int32_t g = 0; g < num_groups(); ++g) {
    const std::int32_t first = group(g).first_needed_block(num_blocks * kTokensPerBlock);
    for (std::int32_t i = 0; i < first; ++i) kv.table(g).append(kHole);
    for (std::int32_t i = first; i < num_blocks; ++i) {
      const BlockId block = block_of(g, i);
      blocks_.add_reference(g, block);
      kv.table(g).append(block);
    }
  }
}

}  // namespace kvasir::kv
