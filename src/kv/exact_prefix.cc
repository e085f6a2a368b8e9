// KvCacheManager: what sequences without a policy leave for those with one.
//
// A policy acts behind each chunk of a prompt, from the first chunk on that leaves no room. Up to the end of that chunk
// keys and values are as computed, so any sequence may have computed them. The policy also knows the attention until
// then. Its sums depend on where chunks end, so only whole chunks from the first token on are kept. From there the
// answer is bit for bit that of a sequence that computed all by itself.
#include <algorithm>
#include <utility>

#include "kv/kv_cache_manager.h"

namespace kvasir::kv {
namespace {

// Attention is kept for the beginning of a prompt: that of the end of each chunk takes 8 bytes for each cell before it.
constexpr std::int32_t kMaxRecordedTokens = 4096;

// Whether its policy acts behind chunks, whenever there is no room.
bool acts_as_it_reads(const KvPolicySettings& policy) {
  return policy.only_at_tokens == 0 && !policy.is_share_of_present && policy.only_cells.begin >= policy.only_cells.end;
}

}  // namespace

// And decides how far its attention is kept.
void KvCacheManager::open_exact_roots(SequenceKv& kv, const CacheScope& scope) {
  const std::int32_t chunk_tokens = config_.prompt_chunk_tokens;
  if (chunk_tokens <= 0 || chunk_tokens % kTokensPerBlock != 0) return;
  if (!group(blocks_.scored_group()).is_full()) return;
  if (!kv.policy.is_lossy()) {
    if (recorded_memory_ == AttentionMemory{}) return;  // nobody has asked
    kv.record_end_tokens = std::min(kv.num_prompt_tokens, kMaxRecordedTokens) / chunk_tokens * chunk_tokens;
    return;
  }
  if (!acts_as_it_reads(kv.policy)) return;
  const KvPolicySettings exact = {.weights_version = kv.policy.weights_version};
  std::tie(kv.exact_root, kv.exact_tenant_root) = open_roots(scope, policy_fingerprint(exact, config_.new_cells));
  if (kv.policy.policy->memory() == AttentionMemory{}) return;
  kv.record_end_tokens = last_shared_chunk_end(kv, std::min(kv.num_prompt_tokens, kMaxRecordedTokens));
}

// A sequence that begins behind a found prefix knows the attention before only where it was kept.
void KvCacheManager::go_on_recording(SequenceKv& kv, std::int32_t num_found_tokens) {
  if (kv.record_end_tokens == 0) return;
  if (kv.policy.is_lossy()) return stop_recording(kv);
  const std::int32_t scored = blocks_.scored_group();
  const BlockId last = kv.table(scored)[num_found_tokens / kTokensPerBlock - 1];
  const auto* kept = num_found_tokens % config_.prompt_chunk_tokens == 0
                         ? blocks_.prefix_scores().find(last, recorded_memory_) : nullptr;
  if (kept == nullptr || num_found_tokens >= kv.record_end_tokens) return stop_recording(kv);
  for (std::size_t g = 0; g < kept->size(); ++g) kv.scores[g] = (*kept)[g].with_room_for(blocks_for(kv.record_end_tokens));
  kv.num_recorded_tokens = num_found_tokens;
}

void KvCacheManager::record_attention(SequenceKv& kv, std::span<const TokenId> tokens, std::int32_t num_computed_tokens) {
  if (kv.record_end_tokens == 0) return;
  kv.num_recorded_tokens += config_.prompt_chunk_tokens;
  const bool is_whole = num_computed_tokens == kv.num_recorded_tokens;
  if (is_whole) {
    const BlockId last = last_exact_block(kv, tokens, num_computed_tokens);
    if (last != kHole && !blocks_.prefix_scores().has(last)) {
      std::vector<SequenceScores> scores;
      for (const SequenceScores& of_group : kv.scores) scores.push_back(of_group.with_room_for(0));
      blocks_.prefix_scores().keep(last, std::move(scores));
    }
  }
  if (is_whole && num_computed_tokens < kv.record_end_tokens) return;
  stop_recording(kv);
}

// That holds the end of the first `num_tokens` as computed and is cached; kHole: none.
BlockId KvCacheManager::last_exact_block(const SequenceKv& kv, std::span<const TokenId> tokens, std::int32_t num_tokens) {
  const std::int32_t scored = blocks_.scored_group();
  const std::int32_t last = num_tokens / kTokensPerBlock - 1;
  if (!kv.policy.is_lossy()) return kv.cursor == kNoPrefixNode ? kHole : kv.table(scored)[last];
  find_path(kv, kv.exact_root, kv.exact_tenant_root, tokens);
  return last < std::ssize(path_) ? blocks_.index().block(path_[static_cast<std::size_t>(last)], scored) : kHole;
}

void KvCacheManager::stop_recording(SequenceKv& kv) {
  if (std::exchange(kv.record_end_tokens, 0) > 0 && !kv.policy.is_lossy()) kv.scores.clear();
}

// The end of the last whole chunk among `num_tokens` that is as computed when the sequence's policy has seen the chunks
// before it.
std::int32_t KvCacheManager::last_shared_chunk_end(const SequenceKv& kv, std::int32_t num_tokens) const {
  const std::int32_t chunk_tokens = config_.prompt_chunk_tokens;
  std::int32_t end = 0;
  while (end + chunk_tokens <= num_tokens) {
    end += chunk_tokens;
    if (demotion_.may_act_on(kv, end / kTokensPerBlock)) break;
  }
  return end;
}

// Takes a longer prefix than the sequence's own that sequences without a policy have cached; returns its tokens, or 0.
std::int32_t KvCacheManager::borrow_exact_prefix(SequenceKv& kv, std::span<const TokenId> tokens,
                                                 std::int32_t num_own_blocks) {
  if (kv.exact_root == kNoPrefixNode) return 0;
  const std::vector<PrefixNodeId> own_path = std::exchange(path_, {});
  find_path(kv, kv.exact_root, kv.exact_tenant_root, tokens);
  const std::int32_t scored = blocks_.scored_group();
  const auto num_known = static_cast<std::int32_t>(path_.size()) * kTokensPerBlock;
  for (std::int32_t end = last_shared_chunk_end(kv, std::min(num_known, kv.num_prompt_tokens));
       end > num_own_blocks * kTokensPerBlock; end -= config_.prompt_chunk_tokens) {
    const std::span nodes = std::span(path_).first(static_cast<std::size_t>(end / kTokensPerBlock));
    if (longest_usable_prefix(nodes) != std::ssize(nodes)) continue;
    const std::vector<SequenceScores>* kept = nullptr;
    if (!kv.scores.empty()) {
      kept = blocks_.prefix_scores().find(blocks_.index().block(nodes.back(), scored), kv.scores.front().memory());
      if (kept == nullptr) continue;
    }
    const std::int32_t num_blocks = end / kTokensPerBlock;
    take_prefix(kv, num_blocks, [&](std::int32_t group, std::int32_t i) {
      return blocks_.index().block(nodes[static_cast<std::size_t>(i)], group);
    });
    kv.borrowed.resize(config_.groups.size());
    for (std::int32_t g = 0; g < num_groups(); ++g) {
      for (std::int32_t i = 0; group(g).is_full() && i < num_blocks; ++i) kv.borrowed[static_cast<std::size_t>(g)].push_back(i);
      if (kept != nullptr) {
        SequenceScores& scores = kv.scores[static_cast<std::size_t>(g)];
        scores = (*kept)[static_cast<std::size_t>(g)].with_room_for(blocks_for(kv.num_prompt_tokens));
      }
    }
    kv.has_borrowed = true;
    kv.num_recorded_tokens = end;
    if (end >= kv.record_end_tokens) stop_recording(kv);
    kv.num_found_blocks = num_blocks;
    num_borrowed_tokens_ += end;
    return end;
  }
  path_ = own_path;
  return 0;
}

void KvCacheManager::borrow_nothing(SequenceKv& kv) {
  for (PrefixNodeId* root : {&kv.exact_root, &kv.exact_tenant_root}) {
    if (*root != kNoPrefixNode) blocks_.index().release(std::exchange(*root, kNoPrefixNode));
  }
  stop_recording(kv);
}

void KvCacheManager::act_on_found_prefix(SequenceKv& kv) {
  if (!kv.is_borrowing()) return;
  demotion_.begin();
  demotion_.demote(kv, kv.num_found_blocks * kTokensPerBlock, kv.num_prompt_tokens);
  demotion_.end();
}

}  // namespace kvasir::kv
