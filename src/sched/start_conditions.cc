#include "sched/start_conditions.h"

#include <fmt/format.h>

#include <algorithm>

namespace kvasir::sched {

Status check_can_ever_fit(const SequenceRequest& request, const kv::KvCacheManager& kv,
                          std::int32_t max_chunk_tokens) {
  const auto num_prompt_tokens = static_cast<std::int64_t>(request.prompt_token_ids.size());
  // The last generated token is never run, so it needs no KV.
  const std::int64_t needed = num_prompt_tokens + std::max(0, request.stop.max_tokens - 1);
  const std::int64_t available = kv.max_sequence_tokens(max_chunk_tokens);
  if (needed <= available) return {};
  return make_error(
      ErrorKind::kUnmet,
      fmt::format("the request needs KV for {} tokens (prompt {} + max_tokens {}), the cache holds {}",
                  needed, num_prompt_tokens, request.stop.max_tokens, available),
      "max_tokens");
}

bool may_be_prefill_only(const SequenceRequest& request, const kv::KvCacheManager& kv,
                         std::int32_t max_tokens) {
  const bool keeps_nothing = !(request.use_prefix_cache && kv.has_prefix_cache());
  return request.stop.max_tokens == 0 && request.num_choices == 1 && keeps_nothing &&
         !request.kv_policy.is_lossy() &&
         std::ssize(request.prompt_token_ids) <= std::min(max_tokens, kv.prefill_only().max_tokens());
}

const Sequence* find_prompt_holder(const Sequence& candidate, std::span<Sequence* const> running) {
  const auto holder = std::ranges::find_if(running, [&](const Sequence* other) {
    return other->request_id == candidate.request_id && other->has_computed_prompt();
  });
  return holder == running.end() ? nullptr : *holder;
}

bool awaits_sibling(const Sequence& candidate, std::span<Sequence* const> running) {
  if (find_prompt_holder(candidate, running) != nullptr) return false;
  return std::ranges::any_of(
      running, [&](const Sequence* other) { return other->request_id == candidate.request_id; });
}

std::int32_t take_cached_prefix(Sequence& sequence, std::span<Sequence* const> running,
                                kv::KvCacheManager& kv) {
  if (sequence.awaits_prompt_logits()) return 0;
  if (sequence.kv.cursor != kv::kNoPrefixNode) return kv.match_prefix(sequence.kv, sequence.token_ids);
  const Sequence* holder = find_prompt_holder(sequence, running);
  if (holder == nullptr) return 0;
  // Its policy was given up, the holder's was not: it would read cells that that policy made coarse.
  if (holder->kv_policy.is_lossy() && !sequence.kv_policy.is_lossy()) return 0;
  return kv.share_prefix(holder->kv, sequence.kv,
                         std::min(sequence.num_prompt_tokens, sequence.num_tokens() - 1));
}

bool kv_fits(const Sequence& candidate, std::span<Sequence* const> running, const kv::KvCacheManager& kv,
             std::int32_t max_chunk_tokens) {
  std::int64_t bytes = candidate.is_prefill_only
                           ? kv.prefill_only().num_bytes(candidate.num_tokens())
                           : kv.bytes_missing(candidate.kv, candidate.num_tokens(), max_chunk_tokens);
  for (const Sequence* other : running) {
    bytes += kv.bytes_missing(other->kv, other->num_tokens(), max_chunk_tokens);
  }
  if (bytes > kv.free_bytes()) return false;
  for (std::int32_t group = 0; group < kv.num_groups(); ++group) {
    std::int64_t missing = candidate.is_prefill_only
                               ? kv.prefill_only().num_blocks(group, candidate.num_tokens())
                               : kv.blocks_missing(candidate.kv, group, candidate.num_tokens(),
                                                   max_chunk_tokens);
    for (const Sequence* other : running) {
      missing += kv.blocks_missing(other->kv, group, other->num_tokens(), max_chunk_tokens);
    }
    if (missing > kv.pool(group).num_free()) return false;
  }
  return true;
}

}  // namespace kvasir::sched
