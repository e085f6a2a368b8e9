#include "sched/admission_policy.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "admission/ttft_target.h"
#include "admission/turn_scale.h"
#include "sched/scheduled_work.h"

namespace kvasir::sched {

using admission::StepLimits;
using admission::StepRates;
using admission::StepWork;

AdmissionPolicy::AdmissionPolicy(const SchedulerConfig& config, const std::vector<Sequence*>& running,
                                 const RequestQueue& waiting)
    : config_(config),
      max_chunk_tokens_(config.effective_chunk_tokens()),
      running_(running),
      waiting_(waiting),
      waiting_order_(config.waiting, config.ttft_target_ms) {}

bool AdmissionPolicy::is_shared(TimePoint now) const {
  return config_.is_by_value() && fair_share_.num_present(now) > 1;
}

bool AdmissionPolicy::is_underserved(const Sequence& sequence) const {
  if (!config_.is_by_value()) return false;
  if (fair_share_.is_underserved(*sequence.account, quantum_tokens())) return true;
  if (!adapters_change_steps()) return false;
  const admission::FairShare& adapters = *sequence.account->adapters;
  return adapters.is_underserved(*sequence.adapter_account, adapter_quantum_tokens(adapters));
}

bool AdmissionPolicy::may_be_underserved(TimePoint now) const {
  if (!config_.is_by_value()) return false;
  if (fair_share_.may_be_underserved(quantum_tokens(), now)) return true;
  if (!adapters_change_steps()) return false;
  return std::ranges::any_of(fair_share_.accounts(), [&](const auto& item) {
    const admission::FairShare& adapters = *item.second.adapters;
    return adapters.num_accounts() > 1 && adapters.may_be_underserved(adapter_quantum_tokens(adapters), now);
  });
}

void AdmissionPolicy::enter(Sequence& sequence, const std::string& tenant, const std::string& adapter, TimePoint now) {
  sequence.account = &fair_share_.enter(tenant, now);
  sequence.adapter_account = &admission::FairShare::adapters_of(*sequence.account).enter(adapter, now);
}

void AdmissionPolicy::charge(Sequence& sequence, std::int32_t num_prompt_tokens, std::int32_t num_generated_tokens,
                             TimePoint now) {
  fair_share_.charge(*sequence.account, num_prompt_tokens, num_generated_tokens, now);
  sequence.account->adapters->charge(*sequence.adapter_account, num_prompt_tokens, num_generated_tokens, now);
}

void AdmissionPolicy::leave(Sequence& sequence, TimePoint now) {
  fair_share_.leave(*sequence.account, now);
  sequence.account->adapters->leave(*sequence.adapter_account, now);
}

admission::SeatReservation AdmissionPolicy::seats(TimePoint now) const {
  return admission::SeatReservation::of(config_.waiting.policy, config_.max_num_seqs,
                                        fair_share_.num_present(now));
}

bool AdmissionPolicy::leaves_seat(const Sequence& sequence, const admission::SeatReservation& seats,
                                  std::int32_t num_running, TimePoint now) const {
  const admission::FairShare::Account& tenant = *sequence.account;
  if (seats.excludes(tenant.num_running, num_running, config_.max_num_seqs)) return true;
  const std::int32_t num_adapters = tenant.adapters->num_present(now);
  admission::SeatReservation of_adapters =
      admission::SeatReservation::of(config_.waiting.policy, config_.max_num_seqs, num_adapters);
  // One of sixteen, and none of fewer: an adapter that may come back is no other customer, and each seat is throughput.
  if (of_adapters.num_reserved > 0) of_adapters.num_reserved = config_.max_num_seqs / 16;
  of_adapters.share = std::max(1, seats.share / std::max(1, num_adapters));
  return of_adapters.excludes(sequence.adapter_account->num_running, num_running, config_.max_num_seqs);
}

StepWork AdmissionPolicy::decoding_work(bool only_underserved) const {
  StepWork work;
  for (const Sequence* sequence : running_) {
    if (sequence->is_held || !sequence->is_decoding()) continue;
    if (!only_underserved || is_underserved(*sequence)) work.add_decoding(sequence->num_computed_tokens);
  }
  return work;
}

StepLimits AdmissionPolicy::step_limits(const StepWork& decoding, TimePoint now) {
  StepLimits limits{.max_tokens = config_.max_num_batched_tokens,
                    .max_chunk_tokens = max_chunk_tokens_,
                    .runs_whole_prompts = config_.runs_whole_prompts};
  if (decoding.num_decoding > 0) {
    if (config_.max_step_ms == 0.0) return limits;
    limits.max_ms = step_limit_ms(decoding, now);
    limits.underserved_ms = admission::step_limit_of_underserved_ms(config_.max_step_ms);
  } else if (config_.is_by_value() && has_long_prompt(now)) {
    limits.max_ms = limits.underserved_ms = admission::step_limit_beside_long_prompt_ms(
        config_.ttft_target_ms, step_times_);
  }
  return limits;
}

bool AdmissionPolicy::may_skip_streams(TimePoint now) const {
  return config_.max_step_ms > 0.0 && decode_skip_budget_.may_skip() && may_be_underserved(now);
}

std::optional<StepLimits> AdmissionPolicy::limits_without_streams(const Ordered& next) const {
  const Sequence& sequence = sequence_of(next);
  if (sequence.is_held || sequence.is_prefill_only || !is_underserved(sequence)) return std::nullopt;
  const std::int32_t first = next.is_running ? sequence.num_computed_tokens
                                             : facts_[next.index].expected_first_position();
  const auto limit_ms = admission::step_limit_without_streams_ms(
      {.first_position = first,
       .num_tokens = sequence.num_tokens() - first,
       .streams = decoding_work(),
       .underserved_streams = decoding_work(true)},
      config_.max_num_batched_tokens, max_chunk_tokens_, config_.max_step_ms, step_times_);
  if (!limit_ms) return std::nullopt;
  return StepLimits{.max_tokens = config_.max_num_batched_tokens,
                    .max_chunk_tokens = max_chunk_tokens_,
                    .max_ms = *limit_ms,
                    .underserved_ms = *limit_ms};
}

double AdmissionPolicy::step_limit_ms(const StepWork& decoding, TimePoint now) const {
  return admission::step_limit_beside_streams_ms(config_.max_step_ms, decoding, step_times_,
                                                 may_be_underserved(now));
}

StepRates AdmissionPolicy::step_rates(TimePoint now) const {
  const StepWork decoding = decoding_work();
  return admission::step_rates(step_times_, decoding, !waiting_.empty() || computes_prompts(),
                               max_chunk_tokens_, step_limit_ms(decoding, now));
}

bool AdmissionPolicy::computes_prompts() const {
  return std::ranges::any_of(running_, [](const Sequence* s) { return !s->is_decoding(); });
}

void AdmissionPolicy::gather_prompts() {
  prompts_.clear();
  facts_.clear();
  std::ranges::copy_if(running_, std::back_inserter(prompts_),
                       [](const Sequence* s) { return !s->is_decoding(); });
  prompts_.insert(prompts_.end(), waiting_.begin(), waiting_.end());
  for (const Sequence* sequence : prompts_) facts_.push_back(sequence->facts());
}

bool AdmissionPolicy::has_long_prompt(TimePoint now) {
  gather_prompts();
  const StepRates rates = step_rates(now);
  for (std::size_t i = 0; i < prompts_.size(); ++i) {
    if (prompts_[i]->is_decoding()) continue;
    if (admission::yields(facts_[i], rates, config_.ttft_target_ms)) return true;
  }
  return false;
}

std::span<const AdmissionPolicy::Ordered> AdmissionPolicy::order(TimePoint now) {
  gather_prompts();
  return waiting_order_.order(facts_, step_rates(now), fair_share_, now);
}

void AdmissionPolicy::exchange_places(const Ordered& started) {
  Sequence& sequence = sequence_of(started);
  if (started.place.arrival == sequence.place.arrival) return;
  for (std::size_t i = 0; i < prompts_.size(); ++i) {
    Sequence& lender = *prompts_[i];
    if (lender.place.arrival != started.place.arrival) continue;
    lender.has_yielded = facts_[i].is_running;
    return std::swap(sequence.place, lender.place);
  }
}

void AdmissionPolicy::begin_with(const admission::StepTimeModel& step_times) {
  step_times_ = step_times;
  scale_turns();
}

void AdmissionPolicy::observe_step(std::span<const ScheduledSequence> sequences, double milliseconds) {
  step_times_.observe(work_of(sequences), milliseconds);
  scale_turns();
}

void AdmissionPolicy::scale_turns() {
  fair_share_.set_turn_scale(
      admission::turn_scale(step_times_, config_.waiting.tenant_quantum_tokens, config_.ttft_target_ms));
}

void AdmissionPolicy::observe_answer(const Sequence& sequence) {
  if (sequence.num_generated_tokens() == 0) return;
  sequence.account->lengths.observe(sequence.num_generated_tokens());
  answer_lengths_.observe(sequence.num_generated_tokens());
}

void AdmissionPolicy::describe_load(std::span<const Sequence* const> unfinished, std::int32_t num_running,
                                    TimePoint now, admission::LoadSnapshot& load) {
  facts_.clear();
  for (const Sequence* sequence : unfinished) facts_.push_back(sequence->facts());
  admission::describe_load({.fair_share = fair_share_,
                            .step_times = step_times_,
                            .rates = step_rates(now),
                            .answer_lengths = answer_lengths_,
                            .policy = config_.waiting.policy,
                            .max_num_seqs = config_.max_num_seqs,
                            .num_running = num_running,
                            .ttft_target_ms = config_.ttft_target_ms,
                            .now = now},
                           facts_, load);
}

}  // namespace kvasir::sched
