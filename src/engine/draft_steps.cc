#include "engine/draft_steps.h"

#include <algorithm>

namespace kvasir {

void DraftSteps::begin_step(const sched::SchedulerOutput& output) {
  if (!is_on_) return;
  ran_.clear();
  next_ran_ = 0;
  streams_.clear();
  guides_.clear();
  num_guesses_ = num_tokens_ = num_accepted_ = num_answer_guesses_ = num_answer_accepted_ = 0;
  is_plain_decoding_ = output.num_whole == output.sequences.size();
  for (const sched::ScheduledSequence& sequence : output.sequences) {
    ran_.push_back({sequence.id, sequence.num_draft_tokens()});
    num_guesses_ += sequence.num_draft_tokens();
    is_plain_decoding_ = is_plain_decoding_ && sequence.samples && sequence.num_committed_tokens() == 1;
  }
}

void DraftSteps::advance(const sched::SequenceUpdate& update, std::int32_t num_sampled,
                         const sched::Scheduler& scheduler, ActiveRequest& request) {
  if (!is_on_) return;
  while (ran_.at(next_ran_).id != update.id) ++next_ran_;  // those between have nothing to say
  const std::int32_t num_guesses = ran_[next_ran_++].num_guesses;
  const std::int32_t num_counting = std::min(num_sampled, static_cast<std::int32_t>(update.tokens.size()));
  const std::int32_t num_accepted = num_guesses > 0 ? num_counting - 1 : 0;
  num_tokens_ += num_counting;
  num_accepted_ += num_accepted;
  request.num_drafts += num_guesses;
  request.num_drafts_accepted += num_accepted;
  if (request.takes_drafts) learn(update, num_guesses, num_accepted, scheduler, request);
  if (update.finish_reason) return speculator_.end(update.id);
  streams_.push_back(update.id);
  std::optional<GuidedChoice>& guide = request.choice_of(update.id).guide;
  guides_.push_back(guide ? &*guide : nullptr);
}

void DraftSteps::learn(const sched::SequenceUpdate& update, std::int32_t num_guesses, std::int32_t num_accepted,
                       const sched::Scheduler& scheduler, const ActiveRequest& request) {
  if (speculator_.knows(update.id)) {
    if (num_guesses > 0 && speculator_.guesses_from_answers(update.id)) {
      num_answer_guesses_ += num_guesses;
      num_answer_accepted_ += num_accepted;
    }
    tokens_.clear();
    for (const sched::SampledToken& sampled : update.tokens) tokens_.push_back(sampled.token);
    speculator_.advance(update.id, tokens_, num_guesses, num_accepted);
  } else if (!update.finish_reason) {
    const Request& asked = request.request;
    std::optional<std::string_view> answer_namespace;
    if (asked.use_prefix_cache) answer_namespace = asked.cache_namespace;
    speculator_.begin(update.id, {.predicted = asked.predicted_token_ids,
                                  .tokens = scheduler.sequences().at(update.id).token_ids,
                                  .num_prompt_tokens = asked.prompt_token_ids.size(),
                                  .answer_namespace = answer_namespace});
  }
}

void DraftSteps::forget(SequenceId id) {
  speculator_.end(id);
  const auto found = std::ranges::find(streams_, id);
  if (found == streams_.end()) return;
  guides_.erase(guides_.begin() + (found - streams_.begin()));
  streams_.erase(found);
}

void DraftSteps::end_step(double step_ms, sched::Scheduler& scheduler, EngineStats& stats) {
  if (!is_on_) return;
  stats.num_draft_tokens += num_guesses_;
  stats.num_draft_tokens_accepted += num_accepted_;
  stats.num_answer_draft_tokens += num_answer_guesses_;
  stats.num_answer_draft_tokens_accepted += num_answer_accepted_;
  if (is_plain_decoding_) {
    speculator_.observe_step(static_cast<std::int32_t>(ran_.size()), num_guesses_, num_tokens_, step_ms);
  }
  for (const spec::Speculator::Draft& draft : speculator_.propose(streams_)) {
    GuidedChoice* const guide = guides_.at(draft.stream);
    const std::size_t num_possible = guide == nullptr ? draft.token_ids.size() : guide->num_possible(draft.token_ids);
    if (num_possible > 0) scheduler.set_draft(draft.id, draft.token_ids.first(num_possible));
  }
}

}  // namespace kvasir
