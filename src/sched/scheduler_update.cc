// Scheduler::update(): what a step's results change.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "sched/scheduler.h"

namespace kvasir::sched {

std::span<const SequenceUpdate> Scheduler::update(ModelStepResult& result, TimePoint now) {
  CHECK(result.num_tokens.size() == output_.sequences.size());
  updates_.clear();
  now_ = now;
  if (output_.num_whole == output_.sequences.size()) {  // a part of the layers teaches nothing
    admission_.observe_step(output_.sequences, admission::Milliseconds(now - step_began_).count());
  }
  kv_.forget_conversions();
  std::span<SampledToken> rest = result.tokens;
  for (std::size_t i = 0; i < output_.sequences.size(); ++i) {
    const std::int32_t num_forced = result.num_forced_of(i);
    const std::span<SampledToken> tokens = rest.first(static_cast<std::size_t>(result.num_tokens[i] + num_forced));
    rest = rest.subspan(tokens.size());
    const auto found = sequences_.find(output_.sequences[i].id);
    if (found == sequences_.end()) continue;  // finished while its step was running
    if (found->second.is_prefill_only) {
      advance_prefill_only(found->second, now);
      continue;
    }
    CHECK(output_.sequences[i].samples == !tokens.empty());
    advance(found->second, tokens, num_forced, now);
  }
  output_.sequences.clear();
  demote_cells();
  return updates_;
}

// Nothing is allocated or freed any more: coarser cells are written anew at the start of the next step.
void Scheduler::demote_cells() {
  kv_.demotion().begin();
  for (Sequence* sequence : running_) {
    kv_.demotion().demote(sequence->kv, sequence->num_computed_tokens, sequence->num_prompt_tokens);
    if (!sequence->kv.pending_demotions.empty()) pending_.push_back(&sequence->kv);
  }
  if (!pending_.empty()) kv_.demotion().demote_shared(pending_);
  pending_.clear();
  kv_.demotion().end();
}

void Scheduler::advance_prefill_only(Sequence& sequence, TimePoint now) {
  if (!prefill_only_.advance(sequence)) return;
  sequence.times.prompt_computed = now;
  admission_.charge(sequence, sequence.num_prompt_tokens, 0, now_);
  updates_.push_back({.id = sequence.id, .finish_reason = FinishReason::kLength, .times = sequence.times});
  remove(sequence);
}

// `tokens`: what the step sampled, all but the last of which were guessed, then forced ones, which no step has run. A
// token that ends the sequence is its last one, whatever comes behind it. Rejected guesses leave nothing: the next step
// writes over their KV.
void Scheduler::advance(Sequence& sequence, std::span<SampledToken> tokens, std::int32_t num_forced, TimePoint now) {
  const bool had_drafts = sequence.num_scheduled_draft_tokens > 0;
  const std::int32_t num_committed = std::exchange(sequence.num_scheduled_tokens, 0);
  const std::int32_t num_before = sequence.num_tokens();
  std::optional<FinishReason> finish_reason = sequence.append_sampled(tokens, num_forced);
  const std::int32_t num_new = sequence.num_tokens() - num_before;
  const std::int32_t num_sampled = std::min(num_new, static_cast<std::int32_t>(tokens.size()) - num_forced);
  tokens = tokens.first(static_cast<std::size_t>(num_new));
  // A forced token is charged as one of a prompt, with the step that computes it.
  admission_.charge(sequence, num_new > 0 ? num_committed - 1 : num_committed, num_sampled, now_);
  sequence.num_computed_tokens += num_committed + std::max(0, num_sampled - 1);
  if (had_drafts) kv_.trim(sequence.kv, sequence.num_computed_tokens);
  kv_.commit(sequence.kv, sequence.token_ids, sequence.num_computed_tokens);
  if (sequence.want_prompt_logits) {
    sequence.num_prompt_logits = std::max(sequence.num_prompt_logits,
                                          std::min(sequence.num_computed_tokens, sequence.num_prompt_tokens));
  }
  if (sequence.has_computed_prompt() && !sequence.times.prompt_computed) sequence.times.prompt_computed = now;
  if (sequence.num_computed_tokens < num_before) return;  // of its prompt there is more to compute

  if (tokens.empty()) finish_reason = FinishReason::kLength;  // a request for its prompt only
  updates_.push_back({.id = sequence.id,
                      .tokens = tokens,
                      .finish_reason = finish_reason,
                      .num_cached_tokens = sequence.num_cached_tokens,
                      .kv_bytes = sequence.earlier_kv_bytes.followed_by(sequence.kv.bytes_use),
                      .kv_usage = sequence.kv_usage(kv_.demotion()),
                      .times = sequence.times,
                      .num_preemptions = sequence.num_preemptions});
  if (finish_reason) remove(sequence);
}

void Scheduler::remove(Sequence& sequence) {
  if (sequence.is_held) --num_held_;
  is_blocked_ = false;
  admission_.observe_answer(sequence);
  admission_.leave(sequence, now_);
  if (sequence.status == SequenceStatus::kRunning) {
    count_running(sequence, -1);
    if (sequence.is_prefill_only) {
      prefill_only_.leave(sequence);
    } else {
      std::erase(running_, &sequence);
    }
    kv_.free(sequence.kv);
  } else {
    waiting_.remove(&sequence);
  }
  sequences_.erase(sequence.id);
}

}  // namespace kvasir::sched
