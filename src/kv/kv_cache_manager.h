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

#include "kv/block_pool.h"
#include "kv/cell_store.h"
#include "kv/layer_group.h"
#include "kv/policy/journal.h"
#include "kv/policy/policy.h"
#include "kv/policy_recorder.h"
#include "kv/prefix_index.h"
#include "kv/public_prefixes.h"
#include "kv/sequence_kv.h"
#include "kv/stats.h"
#include "kvasir/ids.h"
#include "kvasir/result.h"

namespace kvasir::kv {

struct KvCacheConfig {
  std::vector<LayerGroup> groups;
  std::int32_t cells_per_layer = 1;  // KV heads; the cells of a group's blocks are a multiple of it
  std::int32_t head_dim = 64;
  KvFormat new_cells = KvFormat::kF16;  // or kF32
  FormatCosts format_costs = usual_format_costs();
  bool prefix_cache = true;
  std::vector<std::vector<TokenId>> public_prefixes;
  SipKey prefix_hash_key = {};         // random per process
  std::int32_t prefix_hash_bits = 64;  // fewer only in tests
  PolicyJournal* journal = nullptr;    // told what policies do; borrowed
  DiskSpace disk = {};                 // where cells go that become ghosts
  std::int32_t max_extra_pages = 64;   // of memory, for policies; fewer than they need only in tests
};

// Who may find what a sequence leaves in the prefix cache.
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
  // Error (kUsage) naming the field when a group has no block, a negative window, or there is no group.
  static Status validate(const KvCacheConfig& config);
  // Of the memory behind the cells' offsets: room for every group's blocks in the format of new cells, and
  // a few pages for policies.
  static std::int64_t memory_bytes(const KvCacheConfig& config);
  // Requires: validate(config) holds.
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
  // What match_prefix() took is of use, which is what makes it worth keeping: `kv` runs, for the first time.
  void count_hits(const SequenceKv& kv);

  // Shares the full blocks of the first `num_tokens` that `from` holds and has computed, without the prefix
  // index; returns the tokens shared (a multiple of 16), 0 when `from` has slid past them. Requires: `to` is
  // fresh.
  std::int32_t share_prefix(const SequenceKv& from, SequenceKv& to, std::int32_t num_tokens);

  // Makes room for the KV of positions below `num_tokens` in every group. False, and `kv` unchanged, when a
  // pool or the memory is exhausted: the scheduler preempts, nobody logs an error.
  bool allocate(SequenceKv& kv, std::int32_t num_tokens);

  // As allocate() for as many of the positions as there are empty blocks and unused memory for: nothing that
  // is cached goes. Returns below which position there is room now; all that allocate() made stays.
  std::int32_t allocate_empty(SequenceKv& kv, std::int32_t num_tokens);
  // Gives back the blocks behind those of the first `num_tokens` positions, which are not computed.
  void trim(SequenceKv& kv, std::int32_t num_tokens);

  // Makes room for the KV of `num_tokens` tokens in one layer, which all layers of the model use in turn: the
  // cells that a block of one_layer_group() has for its layers serve as many *layer blocks*, 16 tokens of
  // whichever layer runs each, and no cell is taken that none of them needs. Layer block i of block b is
  // number b times the group's layers plus i, which is also how the group's directory counts, read as blocks
  // of cells_per_layer cells. False, and `kv` unchanged, when there is no room. Requires: `kv` is fresh.
  bool allocate_one_layer(SequenceKv& kv, std::int32_t num_tokens);

  // The KV of the first `num_computed_tokens` of `tokens` is now stored: makes the full blocks findable and
  // frees what left the windows.
  void commit(SequenceKv& kv, std::span<const TokenId> tokens, std::int32_t num_computed_tokens);

  // What the sequence's policy says of its cells now that num_computed_tokens are stored. Calls come
  // together, between begin_demotions() and end_demotions(); no sequence is freed or grows between them, but
  // what nobody holds may be evicted to make room. Of a block that others hold too the sequence keeps a wish.
  void begin_demotions() { cells_.begin_demotions(); }
  void demote(SequenceKv& kv, std::int32_t num_computed_tokens, std::int32_t num_prompt_tokens);
  // After the demote() calls: shared blocks of which every holder wishes something become as coarse as the
  // most careful of them wishes. `holders` are all sequences that may have wishes.
  void demote_shared(std::span<SequenceKv* const> holders);
  void end_demotions() {
    cells_.end_demotions();
    recorder_.hand_over();
  }
  // The runtime has written the cells anew that were to be.
  void forget_conversions() { cells_.clear_conversions(); }

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
  // Memory that no sequence holds; some of it may cache what nobody holds.
  std::int64_t free_bytes() const { return room_bytes_ - held_bytes(); }
  // Blocks of a group that allocate_one_layer() takes.
  std::int32_t one_layer_blocks(std::int32_t group, std::int32_t num_tokens) const;
  std::int64_t one_layer_bytes(std::int32_t num_tokens) const;
  // The group whose blocks allocate_one_layer() takes: the one that has room for the most tokens.
  std::int32_t one_layer_group() const { return one_layer_group_; }
  std::int32_t max_one_layer_tokens() const;
  // The longest sequence that fits when it has the cache to itself.
  std::int32_t max_sequence_tokens(std::int32_t max_chunk_tokens) const;

  std::int32_t num_groups() const { return static_cast<std::int32_t>(config_.groups.size()); }
  const LayerGroup& group(std::int32_t index) const {
    return config_.groups[static_cast<std::size_t>(index)];
  }
  const BlockPool& pool(std::int32_t group) const { return pools_[static_cast<std::size_t>(group)]; }
  const PrefixIndex& prefix_index() const { return index_; }
  bool has_prefix_cache() const { return config_.prefix_cache; }
  const CellStore& cells() const { return cells_; }
  // Bytes of the cells that sequences hold; the rest of what is in use is cached.
  std::int64_t held_bytes() const { return cells_.arena().used_bytes() - cached_bytes_; }
  KvStats stats() const;
  std::int64_t num_evictions() const { return num_evictions_; }

 private:
  BlockPool& mutable_pool(std::int32_t group) { return pools_[static_cast<std::size_t>(group)]; }
  void count_missing(const SequenceKv& kv, std::int32_t num_blocks);
  void append_fresh(SequenceKv& kv, std::int32_t num_blocks);
  bool has_empty(std::span<const std::int32_t> num_blocks) const;
  bool has_memory_for(std::int64_t num_cells) const;
  bool make_room(CacheOwner owner, std::span<const std::int32_t> num_blocks);
  bool evict_for(std::span<const std::int32_t> num_blocks);
  bool evict_from(std::int32_t group);
  bool evict_from_fullest();
  BlockId take_block(CacheOwner owner, std::int32_t group);  // without cells
  std::int32_t layers_per_block(std::int32_t group) const {
    return cells_.cells_per_block(group) / config_.cells_per_layer;
  }
  static std::int32_t roomiest_group(const KvCacheConfig& config);
  void release_block(std::int32_t group, BlockId block);
  void add_reference(std::int32_t group, BlockId block);
  std::int32_t longest_usable_prefix(std::span<const PrefixNodeId> nodes);
  template <class BlockOf>
  void take_prefix(SequenceKv& kv, std::int32_t num_blocks, BlockOf block_of);
  void know_ghosts(SequenceKv& kv, std::int32_t group, std::int32_t logical_block) const;
  void open_cursor(SequenceKv& kv, const CacheScope& scope);
  CacheOwner owner_of(std::string_view tenant);
  void leave_public_prefix(SequenceKv& kv);
  void index_block(SequenceKv& kv, std::int32_t logical_index);
  CachedContents contents_of(const SequenceKv& kv, std::int32_t group, std::int32_t logical_index) const;
  void slide(SequenceKv& kv, std::int32_t next_position);
  void demote_group(SequenceKv& kv, std::int32_t group, std::int32_t first_cell, const PolicyView& view);
  bool carry_out(SequenceKv& kv, std::int32_t group, const PolicyView& view, const CellAction& action);
  bool apply(SequenceKv& kv, std::int32_t group, BlockId block, const CellAction& action, KvFormat from);
  bool make_coarser(std::int32_t group, BlockId block, std::int32_t cell, KvFormat to);
  bool grant(std::int32_t group, BlockId block, std::span<const KvFormat> formats,
             std::span<SequenceKv* const> holders);
  void wish(SequenceKv& kv, std::int32_t group, BlockId block, const CellAction& action);
  double bytes_share(const SequenceKv& kv, std::int32_t num_budget_blocks) const;

  const KvCacheConfig config_;
  std::vector<BlockPool> pools_;  // one per group
  PrefixIndex index_;
  const PublicPrefixes public_prefixes_;
  std::map<std::string, CacheOwner, std::less<>> owners_;  // by tenant
  const std::int32_t one_layer_group_;
  std::int64_t num_full_cells_ = 0;  // of a block over the groups without a window
  std::int64_t room_bytes_ = 0;      // that cells may take; the memory is a little more, in whole pages
  CellStore cells_;                  // blocks that are held, or free and cached, have cells
  PolicyRecorder recorder_;
  std::vector<PrefixNodeId> path_;         // of match_prefix(), kept for its memory
  std::vector<std::int32_t> run_lengths_;  // per group: cached blocks in a row; likewise
  std::vector<std::int32_t> missing_;      // of allocate(), per group; likewise
  std::vector<BlockId> fresh_;             // of allocate(); likewise
  std::vector<CellAction> actions_;        // of demote(); likewise
  std::int64_t cached_bytes_ = 0;          // of blocks that nobody holds
  std::int64_t num_evictions_ = 0;
  std::int64_t num_deduplicated_ = 0;
};

}  // namespace kvasir::kv
