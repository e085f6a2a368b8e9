#include "kv/kv_cache_manager.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace kvasir::kv {
namespace {

// In the cache's shares; evictions look at each.
constexpr std::size_t kMaxOwners = 256;

PrefixIndex::BlockTokens tokens_of_block(std::span<const TokenId> tokens, std::int32_t logical_index) {
  return tokens.subspan(static_cast<std::size_t>(logical_index) * kTokensPerBlock).first<kTokensPerBlock>();
}

}  // namespace

KvCacheManager::KvCacheManager(KvCacheConfig config)
    : config_(std::move(config)),
      blocks_(config_),
      public_prefixes_(config_.public_prefixes),
      recorder_(config_.journal, config_.groups, blocks_.cells()),
      demotion_(config_, blocks_, recorder_),
      prefill_only_(config_, blocks_) {
  CHECK(config_.validate().has_value());
}

SequenceKv KvCacheManager::open(const CacheScope& scope, bool use_prefix_cache, std::int32_t expected_tokens,
                                const KvPolicySettings& policy) {
  SequenceKv kv;
  kv.policy = policy;
  kv.num_prompt_tokens = static_cast<std::int32_t>(scope.prompt.size());
  kv.owner = owner_of(scope.tenant);
  kv.tables.resize(config_.groups.size());
  for (BlockTable& table : kv.tables) table.reserve(blocks_for(expected_tokens));
  if (use_prefix_cache && config_.prefix_cache) open_cursor(kv, scope);
  if (policy.is_lossy()) {
    if (kv.exact_root != kNoPrefixNode) recorded_memory_ = policy.policy->memory();
    remember_attention(kv, policy.policy->memory(), expected_tokens);
  } else if (kv.record_end_tokens > 0) {
    remember_attention(kv, recorded_memory_, kv.record_end_tokens);
  }
  return kv;
}

void KvCacheManager::remember_attention(SequenceKv& kv, const AttentionMemory& memory, std::int32_t expected_tokens) const {
  if (memory == AttentionMemory{}) return;
  for (const LayerGroup& group : config_.groups) {
    kv.scores.emplace_back(memory, group.is_full() ? group.cells_per_block : 0, group.head_dim, blocks_for(expected_tokens));
  }
}

void KvCacheManager::open_cursor(SequenceKv& kv, const CacheScope& scope) {
  std::tie(kv.cursor, kv.tenant_root) = open_roots(scope, policy_fingerprint(kv.policy, config_.new_cells));
  kv.num_public_blocks = public_prefixes_.longest(scope.prompt).num_blocks;
  open_exact_roots(kv, scope);
}

std::pair<PrefixNodeId, PrefixNodeId> KvCacheManager::open_roots(const CacheScope& scope, std::uint64_t fingerprint) {
  const PublicPrefixes::Match match = public_prefixes_.longest(scope.prompt);
  const PrefixNodeId own = blocks_.index().open(PublicPrefixes::tenant_namespace(match, scope.cache_namespace),
                                                fingerprint);
  if (match.number == 0) return {own, kNoPrefixNode};
  return {blocks_.index().open(PublicPrefixes::public_namespace(match), fingerprint), own};
}

CacheOwner KvCacheManager::owner_of(std::string_view tenant) {
  if (const auto known = owners_.find(tenant); known != owners_.end()) return known->second;
  if (owners_.size() + 1 >= kMaxOwners) return kAnyOwner;
  const auto next = static_cast<CacheOwner>(owners_.size() + 1);
  return owners_.emplace(tenant, next).first->second;
}

// The cursor has passed the last public block, or its holder begins behind it.
void KvCacheManager::leave_public_prefix(SequenceKv& kv) {
  blocks_.index().release(kv.cursor);
  kv.cursor = std::exchange(kv.tenant_root, kNoPrefixNode);
}

std::int32_t KvCacheManager::match_prefix(SequenceKv& kv, std::span<const TokenId> tokens) {
  if (kv.cursor == kNoPrefixNode || tokens.empty()) return 0;
  find_path(kv, kv.cursor, kv.tenant_root, tokens);
  const std::int32_t num_blocks = longest_usable_prefix(path_);
  if (const std::int32_t borrowed = borrow_exact_prefix(kv, tokens, num_blocks); borrowed > 0) return borrowed;
  if (num_blocks == 0) return 0;
  kv.num_found_blocks = num_blocks;
  take_prefix(kv, num_blocks, [&](std::int32_t group, std::int32_t i) {
    return blocks_.index().block(path_[static_cast<std::size_t>(i)], group);
  });
  if (kv.tenant_root != kNoPrefixNode && num_blocks > kv.num_public_blocks) leave_public_prefix(kv);
  kv.cursor = blocks_.index().move(kv.cursor, path_[static_cast<std::size_t>(num_blocks) - 1]);
  kv.num_indexed_blocks = num_blocks;
  go_on_recording(kv, num_blocks * kTokensPerBlock);
  return num_blocks * kTokensPerBlock;
}

// Into path_: the nodes of the full blocks of `tokens` that are known behind a root, but for the last token.
void KvCacheManager::find_path(const SequenceKv& kv, PrefixNodeId root, PrefixNodeId tenant_root,
                               std::span<const TokenId> tokens) {
  path_.clear();
  const auto max_blocks = static_cast<std::int32_t>((tokens.size() - 1) / kTokensPerBlock);
  PrefixNodeId node = root;
  for (std::int32_t i = 0; i < max_blocks; ++i) {
    if (i > 0 && i == kv.num_public_blocks) node = tenant_root;
    const auto child = blocks_.index().find_child(node, tokens_of_block(tokens, i));
    if (!child) break;
    path_.push_back(node = *child);
  }
}

void KvCacheManager::count_hits(const SequenceKv& kv) {
  for (std::int32_t g = 0; g < num_groups(); ++g) {
    for (std::int32_t i = 0; i < std::min(kv.num_found_blocks, kv.table(g).size()); ++i) {
      if (const BlockId block = kv.table(g)[i]; block != kHole) blocks_.mutable_pool(g).count_hit(block);
    }
  }
}

// The largest L such that every group has the blocks it needs of nodes[0, L): all for a full group, the last
// window for a window group.
std::int32_t KvCacheManager::longest_usable_prefix(std::span<const PrefixNodeId> nodes) {
  std::int32_t longest = 0;
  run_lengths_.assign(config_.groups.size(), 0);
  for (std::int32_t length = 1; length <= static_cast<std::int32_t>(nodes.size()); ++length) {
    bool is_usable = true;
    for (std::int32_t g = 0; g < num_groups(); ++g) {
      std::int32_t& run_length = run_lengths_[static_cast<std::size_t>(g)];
      const bool is_cached = blocks_.index().block(nodes[static_cast<std::size_t>(length) - 1], g) != kHole;
      run_length = is_cached ? run_length + 1 : 0;
      is_usable &= run_length >= length - group(g).first_needed_block(length * kTokensPerBlock);
    }
    if (is_usable) longest = length;
  }
  return longest;
}

std::int32_t KvCacheManager::share_prefix(const SequenceKv& from, SequenceKv& to, std::int32_t num_tokens) {
  const std::int32_t num_blocks = num_tokens / kTokensPerBlock;
  if (from.is_borrowing()) return 0;
  stop_recording(to);
  for (std::int32_t g = 0; g < num_groups(); ++g) {
    const BlockTable& table = from.table(g);
    const std::int32_t first = group(g).first_needed_block(num_blocks * kTokensPerBlock);
    CHECK(table.size() >= num_blocks);
    for (std::int32_t i = first; i < num_blocks; ++i) {
      if (table[i] == kHole) return 0;
    }
  }
  take_prefix(to, num_blocks, [&](std::int32_t group, std::int32_t i) { return from.table(group)[i]; });
  return num_blocks * kTokensPerBlock;
}

std::int32_t KvCacheManager::fork(const SequenceKv& from, SequenceKv& to, std::int32_t num_tokens) {
  const std::int32_t num_shared = share_prefix(from, to, num_tokens);
  const std::int32_t num_full = num_tokens / kTokensPerBlock * kTokensPerBlock;
  if (num_shared != num_full || num_tokens == num_full || !allocate(to, num_tokens)) return num_shared;
  const std::int32_t last = num_full / kTokensPerBlock;
  for (std::int32_t g = 0; g < num_groups(); ++g) blocks_.cells().copy(g, from.table(g)[last], to.table(g)[last]);
  return num_tokens;
}

bool KvCacheManager::allocate(SequenceKv& kv, std::int32_t num_tokens) {
  const std::int32_t num_blocks = blocks_for(num_tokens);
  count_missing(kv, num_blocks);
  for (std::int32_t g = 0; g < num_groups(); ++g) {
    if (missing_[static_cast<std::size_t>(g)] > pool(g).num_free()) return false;
  }
  if (!blocks_.make_room(kv.owner, missing_)) return false;
  append_fresh(kv, num_blocks);
  return true;
}

std::int32_t KvCacheManager::allocate_empty(SequenceKv& kv, std::int32_t num_tokens) {
  for (std::int32_t num_blocks = blocks_for(num_tokens);; --num_blocks) {
    count_missing(kv, num_blocks);
    const bool is_there = std::ranges::none_of(missing_, [](std::int32_t n) { return n > 0; });
    if (!is_there && !blocks_.has_empty(missing_)) continue;
    append_fresh(kv, num_blocks);
    return std::min(num_tokens, num_blocks * kTokensPerBlock);
  }
}

void KvCacheManager::trim(SequenceKv& kv, std::int32_t num_tokens) {
  for (std::int32_t g = 0; g < num_groups(); ++g) {
    BlockTable& table = kv.table(g);
    while (table.size() > blocks_for(num_tokens)) blocks_.release(g, table.pop_back());
  }
}

// Into missing_: what each group lacks of so many blocks.
void KvCacheManager::count_missing(const SequenceKv& kv, std::int32_t num_blocks) {
  missing_.clear();
  for (std::int32_t g = 0; g < num_groups(); ++g) {
    missing_.push_back(std::max(0, num_blocks - kv.table(g).size()));
  }
}

// Requires: there is room for them.
void KvCacheManager::append_fresh(SequenceKv& kv, std::int32_t num_blocks) {
  for (std::int32_t g = 0; g < num_groups(); ++g) {
    BlockTable& table = kv.table(g);
    fresh_.clear();
    while (table.size() < num_blocks) table.append(fresh_.emplace_back(blocks_.take(kv.owner, g)));
    CHECK(blocks_.cells().fill(g, fresh_, blocks_.cells().cells_per_block(g)));
  }
}

void KvCacheManager::commit(SequenceKv& kv, std::span<const TokenId> tokens,
                            std::int32_t num_computed_tokens) {
  if (kv.cursor != kNoPrefixNode) {
    // Blocks that belong to others wait for their copies, so that none comes without the ones before it.
    while (!kv.is_borrowing() && kv.cursor != kNoPrefixNode &&
           (kv.num_indexed_blocks + 1) * kTokensPerBlock <= num_computed_tokens) {
      if (kv.tenant_root != kNoPrefixNode && kv.num_indexed_blocks == kv.num_public_blocks) {
        leave_public_prefix(kv);
      }
      kv.cursor = blocks_.index().advance(kv.cursor, tokens_of_block(tokens, kv.num_indexed_blocks));
      index_block(kv, kv.num_indexed_blocks++);
    }
  }
  record_attention(kv, tokens, num_computed_tokens);
  slide(kv, num_computed_tokens);
  kv.num_computed_tokens = num_computed_tokens;
}

// Names the sequence's block as the one for its contents, or, when an equal block is cached, takes that one
// and gives the own one back: KV of equal prefixes is equal bit for bit.
void KvCacheManager::index_block(SequenceKv& kv, std::int32_t logical_index) {
  for (std::int32_t g = 0; g < num_groups(); ++g) {
    BlockPool& pool = blocks_.mutable_pool(g);
    BlockTable& table = kv.table(g);
    const BlockId own = table[logical_index];
    if (own == kHole) continue;
    const BlockId cached = blocks_.index().block(kv.cursor, g);
    if (kv.has_borrowed && (cached != kHole || pool.contents(own) != kNoPrefixNode)) {
      if (group(g).is_full()) return stop_indexing(kv);  // another's is coarser or finer by now
      continue;
    }
    if (cached == kHole) {
      blocks_.index().set_block(kv.cursor, g, own);
      pool.set_contents(own, contents_of(kv, g, logical_index));
    } else {
      blocks_.add_reference(g, cached);
      table.replace(logical_index, cached);
      blocks_.release(g, own);
      ++num_deduplicated_;
    }
  }
}

// Nothing more of it becomes findable.
void KvCacheManager::stop_indexing(SequenceKv& kv) {
  blocks_.index().release(std::exchange(kv.cursor, kNoPrefixNode));
  if (kv.tenant_root != kNoPrefixNode) blocks_.index().release(std::exchange(kv.tenant_root, kNoPrefixNode));
}

// The blocks of one prefix have one owner, so that no part of it goes before what follows.
CachedContents KvCacheManager::contents_of(const SequenceKv& kv, std::int32_t group,
                                           std::int32_t logical_index) const {
  CachedContents contents{.node = kv.cursor, .owner = kv.owner};
  if (logical_index < kv.num_public_blocks) contents.owner = kAnyOwner;
  const PrefixNodeId parent = blocks_.index().parent(kv.cursor);
  const BlockId head = parent == kNoPrefixNode ? kHole : blocks_.index().block(parent, group);
  if (head != kHole) contents.owner = pool(group).owner(head);
  return contents;
}

void KvCacheManager::slide(SequenceKv& kv, std::int32_t next_position) {
  for (std::int32_t g = 0; g < num_groups(); ++g) {
    BlockTable& table = kv.table(g);
    const std::int32_t end = group(g).first_needed_block(next_position);
    while (table.first_held() < end) blocks_.release(g, table.make_hole(table.first_held()));
  }
}

void KvCacheManager::free(SequenceKv& kv) {
  recorder_.end_sequence(kv);
  for (std::int32_t g = 0; g < static_cast<std::int32_t>(kv.tables.size()); ++g) {
    const BlockTable& table = kv.table(g);
    for (std::int32_t i = table.size() - 1; i >= table.first_held(); --i) {
      if (table[i] != kHole) blocks_.release(g, table[i]);
    }
  }
  for (const PrefixNodeId hold : {kv.cursor, kv.tenant_root, kv.exact_root, kv.exact_tenant_root}) {
    if (hold != kNoPrefixNode) blocks_.index().release(hold);
  }
  kv = SequenceKv{};
}

std::int32_t KvCacheManager::blocks_missing(const SequenceKv& kv, std::int32_t group_index,
                                            std::int32_t num_tokens, std::int32_t max_chunk_tokens) const {
  const std::int32_t peak = group(group_index).peak_blocks(num_tokens, max_chunk_tokens);
  // It will copy those that it has borrowed.
  const auto num_borrowed = static_cast<std::int32_t>(kv.borrowed_blocks(group_index).size());
  return std::max(0, peak - kv.table(group_index).num_held() + num_borrowed);
}

std::int64_t KvCacheManager::bytes_missing(const SequenceKv& kv, std::int32_t num_tokens,
                                           std::int32_t max_chunk_tokens) const {
  double bytes = 0.0;
  for (std::int32_t g = 0; g < num_groups(); ++g) {
    const std::int32_t num_blocks = blocks_missing(kv, g, num_tokens, max_chunk_tokens);
    const auto new_bytes = static_cast<double>(blocks_.cells().new_block_bytes(g));
    double kept = num_blocks * new_bytes;
    if (group(g).is_full() && kv.policy.is_lossy() && !kv.is_frozen) {
      const std::int64_t cell_in_f16 = cell_bytes(KvFormat::kF16, group(g).head_dim);
      const double share = kv.policy.expected_share(config_.num_full_cells() * blocks_for(num_tokens) *
                                                    cell_in_f16);
      // A chunk comes on top of what the whole prompt may keep, from early on.
      const std::int32_t num_new = blocks_for(max_chunk_tokens) + 1;
      const auto in_f16 = static_cast<double>(num_blocks * blocks_.cells().cells_per_block(g) * cell_in_f16);
      kept = std::min(kept, num_new * new_bytes + share * in_f16);
    }
    bytes += kept;
  }
  return static_cast<std::int64_t>(bytes);
}

std::int32_t KvCacheManager::max_sequence_tokens(std::int32_t max_chunk_tokens) const {
  // Any length has the same peak in a window group that can hold a window and a chunk.
  constexpr std::int32_t kAnyLength = std::numeric_limits<std::int32_t>::max() / 2;
  std::int32_t longest = kAnyLength;
  for (const LayerGroup& group : config_.groups) {
    if (group.peak_blocks(kAnyLength, max_chunk_tokens) <= group.num_blocks) continue;
    longest = std::min(longest, group.num_blocks * kTokensPerBlock);
  }
  return longest;
}

KvStats KvCacheManager::stats() const {
  KvStats stats;
  for (std::int32_t g = 0; g < num_groups(); ++g) {
    const BlockPool& pool = this->pool(g);
    stats.groups.push_back({.num_blocks = pool.num_blocks(),
                            .num_referenced = pool.num_blocks() - pool.num_free(),
                            .num_cached_free = pool.num_cached_free()});
  }
  stats.num_evictions = blocks_.num_evictions();
  stats.num_deduplicated = num_deduplicated_;
  stats.num_borrowed_tokens = num_borrowed_tokens_;
  return stats;
}

}  // namespace kvasir::kv
