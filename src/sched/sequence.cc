#include "sched/sequence.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace kvasir::sched {

kv::KvHolder Sequence::kv_holder() const {
  return {.request_id = request_id,
          .choice = choice,
          .num_prompt_tokens = num_prompt_tokens,
          .client_id = client_id};
}

admission::SequenceFacts Sequence::facts() const {
  return {.id = id,
          .account = account,
          .adapter_account = adapter_account,
          .priority = priority,
          .is_running = status == SequenceStatus::kRunning,
          .is_prefill_only = is_prefill_only,
          .has_yielded = has_yielded,
          .place = place,
          .arrived = times.arrived,
          .started = times.started,
          .num_tokens = num_tokens(),
          .num_generated_tokens = num_generated_tokens(),
          .num_computed_tokens = num_computed_tokens,
          .first_position = first_position,
          .expected_cached_tokens = expected_cached_tokens,
          .expected_generated_tokens = expected_generated_tokens()};
}

ScheduledSequence Sequence::scheduled_part() {
  const bool catches_up = num_scheduled_tokens == num_remaining_tokens();
  ScheduledSequence part{.id = id,
                         .history = token_ids,
                         .draft_token_ids = std::span(draft_token_ids)
                                                .first(static_cast<std::size_t>(num_scheduled_draft_tokens)),
                         .num_prompt_tokens = num_prompt_tokens,
                         .first_position = num_computed_tokens,
                         .num_tokens = num_scheduled_tokens + num_scheduled_draft_tokens,
                         .first_logits_row = num_scheduled_tokens,
                         .samples = catches_up && stop.max_tokens > 0,
                         .block_tables = kv.tables,
                         .scores = kv.scores};
  if (part.samples) part.first_logits_row = num_scheduled_tokens - 1;
  if (awaits_prompt_logits()) {
    part.first_logits_row = std::clamp(num_prompt_logits - num_computed_tokens, 0, num_scheduled_tokens);
  }
  return part;
}

std::optional<FinishReason> Sequence::append_sampled(std::span<const SampledToken> tokens, std::int32_t num_forced) {
  CHECK(num_forced <= kMaxForcedTokens);
  CHECK(std::ssize(tokens) - num_forced <= 1 + std::exchange(num_scheduled_draft_tokens, 0));
  draft_token_ids.clear();
  std::optional<FinishReason> finish_reason;
  for (const SampledToken& sampled : tokens) {
    token_ids.push_back(sampled.token);
    finish_reason = check_stop(stop, sampled.token, num_generated_tokens());
    if (finish_reason) break;
  }
  return finish_reason;
}

KvUsage Sequence::kv_usage(const kv::Demotion& demotion) const {
  if (kv.bytes_use.has_acted()) return kv.bytes_use.last();
  if (!kv_policy.is_lossy() && !earlier_kv_bytes.has_acted()) return {};
  return demotion.measure(kv, num_prompt_tokens);
}

}  // namespace kvasir::sched
