#include "engine/draft_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>

#include "sampling/sampler.h"

namespace kvasir {

void DraftSteps::begin_step(const sched::SchedulerOutput& output) {
  if (!is_on_) return;
  ran_.clear();
  next_ran_ = 0;
  streams_.clear();
  guides_.clear();
  requests_.clear();
  num_guesses_ = num_tokens_ = num_accepted_ = 0;
  num_expected_ = 0.0;
  drafts_by_ = {};
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
  if (update.finish_reason) return end(update.id);
  streams_.push_back(update.id);
  std::optional<GuidedChoice>& guide = request.choice_of(update.id).guide;
  guides_.push_back(guide ? &*guide : nullptr);
  requests_.push_back(&request);
}

void DraftSteps::learn(const sched::SequenceUpdate& update, std::int32_t num_guesses, std::int32_t num_accepted,
                       const sched::Scheduler& scheduler, const ActiveRequest& request) {
  if (speculator_.knows(update.id)) {
    for (std::int32_t i = 0; i < num_guesses; ++i) {
      DraftCounts& counts = drafts_by_.at(static_cast<std::size_t>(speculator_.source_of(update.id, i)));
      ++counts.num_drafted;
      if (i < num_accepted) ++counts.num_accepted;
    }
    tokens_.clear();
    for (const sched::SampledToken& sampled : update.tokens) tokens_.push_back(sampled.token);
    num_expected_ += speculator_.num_expected(update.id, num_guesses);
    speculator_.advance(update.id, tokens_, num_guesses, num_accepted);
  } else if (!update.finish_reason) {
    const Request& asked = request.request;
    std::optional<std::string> answer_namespace;
    if (asked.use_prefix_cache) answer_namespace = asked.cache_namespace;
    if (answer_namespace && request.adapter.entry != nullptr) *answer_namespace += fmt::format("\n{:x}", request.adapter.version());
    speculator_.begin(update.id, {.predicted = asked.predicted_token_ids,
                                  .tokens = scheduler.sequences().at(update.id).token_ids,
                                  .num_prompt_tokens = asked.prompt_token_ids.size(),
                                  .answer_namespace = answer_namespace,
                                  .replayed = asked.replayed_token_ids});
  }
}

void DraftSteps::end(SequenceId id) {
  speculator_.end(id);
  if (model_ != nullptr) model_->end(id);
}

void DraftSteps::forget(SequenceId id) {
  end(id);
  const auto found = std::ranges::find(streams_, id);
  if (found == streams_.end()) return;
  guides_.erase(guides_.begin() + (found - streams_.begin()));
  requests_.erase(requests_.begin() + (found - streams_.begin()));
  streams_.erase(found);
}

void DraftSteps::count_estimates(DraftEstimates& estimates) const {
  if (num_guesses_ == 0) return;
  ++estimates.num_steps;
  estimates.num_tokens_expected += static_cast<double>(ran_.size()) + num_expected_;
  estimates.num_tokens += num_tokens_;
  const auto& [expected_ms, ms] = speculator_.gate().times();
  estimates.seconds_expected = expected_ms / 1000.0;
  estimates.seconds = ms / 1000.0;
}

void DraftSteps::end_step(double step_ms, sched::Scheduler& scheduler, EngineStats& stats) {
  if (!is_on_) return;
  stats.num_draft_tokens += num_guesses_;
  stats.num_draft_tokens_accepted += num_accepted_;
  for (std::size_t i = 0; i < drafts_by_.size(); ++i) {
    stats.drafts_by.at(i).num_drafted += drafts_by_.at(i).num_drafted;
    stats.drafts_by.at(i).num_accepted += drafts_by_.at(i).num_accepted;
  }
  stats.draft_model_seconds_total += draft_ms_ / 1000.0;
  if (is_plain_decoding_) {
    speculator_.observe_step(static_cast<std::int32_t>(ran_.size()), num_guesses_, num_tokens_, step_ms, draft_ms_);
    count_estimates(stats.draft_estimates);
  }
  draft_ms_ = 0.0;
  model_drafts_.clear();
  num_asked_ = 0;
  // Beside a prompt nothing is guessed, and a prompt is seldom alone.
  for (const spec::Speculator::Draft& draft : speculator_.propose(streams_, is_plain_decoding_)) {
    if (draft.num_wanted > 0) {
      model_drafts_.push_back(draft);
    } else {
      give(draft, draft.token_ids, scheduler);
    }
  }
  if (!model_drafts_.empty()) ask_model(scheduler);
}

void DraftSteps::give(const spec::Speculator::Draft& draft, std::span<const TokenId> guesses,
                      sched::Scheduler& scheduler) const {
  GuidedChoice* const guide = guides_.at(draft.stream);
  const std::size_t num_possible = guide == nullptr ? guesses.size() : guide->num_possible(guesses);
  if (num_possible > 0) scheduler.set_draft(draft.id, guesses.first(num_possible));
}

// Residual sampling gives other tokens than no guesses do, so a request that names its seed is not subject to it.
bool DraftSteps::is_residual(const ActiveRequest& request) const {
  const SamplingParams& sampling = request.request.sampling;
  return rule_ == DraftRule::kResidual && !sampling.seed && !sampling::is_greedy(sampling);
}

std::span<const sampling::Distribution> DraftSteps::drawn_from(const sched::ScheduledSequence& sequence) const {
  const std::span<const TokenId> draft = sequence.draft_token_ids;
  const auto asked = std::span(asked_).first(num_asked_);
  const auto found = std::ranges::find(asked, sequence.id, &DraftModel::Asked::id);
  if (draft.empty() || found == asked.end() || !found->is_residual) return {};
  // A draft of an earlier step, which did not run then, is checked by equality. That is right for any guess.
  if (draft.size() > found->guesses.size()) return {};
  if (!std::ranges::equal(draft, std::span(found->guesses).first(draft.size()))) return {};
  return found->drawn_from;
}

void DraftSteps::ask(const spec::Speculator::Draft& draft, const sched::Scheduler& scheduler,
                     DraftModel::Asked& asked) const {
  const ActiveRequest& request = *requests_.at(draft.stream);
  asked.id = draft.id;
  asked.tokens = scheduler.sequences().at(draft.id).token_ids;
  asked.num_prompt_tokens = static_cast<std::int32_t>(request.request.prompt_token_ids.size());
  asked.params = &request.request.sampling;
  asked.seed = request.seed;
  asked.choice_index = static_cast<std::int32_t>(request.choice_index_of(draft.id));
  asked.stop_tokens = request.stop_tokens;
  asked.num_guesses = draft.num_wanted;
  asked.is_residual = is_residual(request);
  asked.allowed_behind = {};
  if (!asked.is_residual) return;
  GuidedChoice* const guide = guides_.at(draft.stream);
  const std::optional<grammar::TokenMask>* const mask = &request.allowed_tokens;
  asked.allowed_behind = [guide, mask](std::span<const TokenId> guesses) -> std::optional<sampling::AllowedTokens> {
    if (guide == nullptr) return *mask ? sampling::AllowedTokens::of((*mask)->words()) : sampling::AllowedTokens::all();
    return guide->allowed_behind(guesses);
  };
}

// A guess is not left out because of what it is, or its token would come too seldom. So those of a guided answer were
// drawn among what it allows. The one exception is a guide that has no states left for them, as no guess may make an answer
// fail.
void DraftSteps::give_drawn(const spec::Speculator::Draft& draft, std::span<const TokenId> guesses,
                            sched::Scheduler& scheduler) const {
  GuidedChoice* const guide = guides_.at(draft.stream);
  if (guesses.empty() || (guide != nullptr && !guide->has_states_for(guesses))) return;
  scheduler.set_draft(draft.id, guesses);
}

void DraftSteps::ask_model(sched::Scheduler& scheduler) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  num_asked_ = model_drafts_.size();
  asked_.resize(std::max(asked_.size(), num_asked_));
  const auto asked = std::span(asked_).first(num_asked_);
  for (std::size_t i = 0; i < asked.size(); ++i) ask(model_drafts_[i], scheduler, asked[i]);
  const DraftModel::Passes passes = model_->guess(asked);
  draft_ms_ = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  speculator_.observe_passes(passes.count, passes.milliseconds);
  for (std::size_t i = 0; i < asked.size(); ++i) {
    if (asked[i].is_residual) {
      give_drawn(model_drafts_[i], asked[i].guesses, scheduler);
    } else {
      give(model_drafts_[i], asked[i].guesses, scheduler);
    }
  }
}

}  // namespace kvasir
