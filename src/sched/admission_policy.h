// The scheduler's questions to src/admission, asked over its own sequences.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "admission/decode_skip_budget.h"
#include "admission/fair_share.h"
#include "admission/load_snapshot.h"
#include "admission/output_lengths.h"
#include "admission/seat_reservation.h"
#include "admission/step_limits.h"
#include "admission/step_rates.h"
#include "admission/step_time_model.h"
#include "admission/waiting_order.h"
#include "sched/request_queue.h"
#include "sched/scheduler_config.h"
#include "sched/sequence.h"

namespace kvasir::sched {

// Answers which sequence is next, how long a step may take, and which tenant is underserved. Holds what
// admission has learned: the tenants' shares, the times of steps, the lengths of answers. Changes nothing of
// a sequence but its place.
//
// Thread safety: none.
class AdmissionPolicy {
 public:
  using Ordered = admission::OrderedSequence;
  // Running sequences, in RunsBefore order, and waiting ones. Borrowed.
  AdmissionPolicy(const SchedulerConfig& config, const std::vector<Sequence*>& running,
                  const RequestQueue& waiting);

  // A sequence of the tenant comes, with one of its adapters or none; it takes its part of a step; it goes.
  void enter(Sequence& sequence, const std::string& tenant, const std::string& adapter, TimePoint now);
  void charge(Sequence& sequence, std::int32_t num_prompt_tokens, std::int32_t num_generated_tokens, TimePoint now);
  void leave(Sequence& sequence, TimePoint now);
  // By value, and with several tenants.
  bool is_shared(TimePoint now) const;
  bool is_underserved(const Sequence& sequence) const;
  bool may_be_underserved(TimePoint now) const;
  admission::SeatReservation seats(TimePoint now) const;
  // Whether the sequence, which waits, leaves the last seats to other tenants, or to other adapters of its own.
  bool leaves_seat(const Sequence& sequence, const admission::SeatReservation& seats, std::int32_t num_running,
                   TimePoint now) const;

  // The sequences that decode in the next step.
  admission::StepWork decoding_work(bool only_underserved = false) const;
  // Time limits of a step beside `decoding`.
  admission::StepLimits step_limits(const admission::StepWork& decoding, TimePoint now);
  // Limits of a step that leaves out all streams but those of underserved tenants, for the prompt that is next
  // in order(); none where the step is like any other.
  std::optional<admission::StepLimits> limits_without_streams(const Ordered& next) const;
  bool may_skip_streams(TimePoint now) const;
  // Whether the last step left streams out: the next is for all streams and computes no prompts beside.
  bool streams_are_due() const { return decode_skip_budget_.are_due(); }
  void count_step(bool skips_streams) { decode_skip_budget_.count(skips_streams); }

  // Prompts that have begun and sequences that wait, in the order in which they are served. Valid until the
  // next call of a member that is not const.
  std::span<const Ordered> order(TimePoint now);
  Sequence& sequence_of(const Ordered& ordered) const { return *prompts_[ordered.index]; }
  // A sequence of order() has started. Where it took another's place, that one gets its place: others wait for
  // one of the two only.
  void exchange_places(const Ordered& started);
  bool computes_prompts() const;

  const admission::StepTimeModel& step_times() const { return step_times_; }
  void begin_with(const admission::StepTimeModel& step_times);
  // A step in which all sequences ran all layers took this long.
  void observe_step(std::span<const ScheduledSequence> sequences, double milliseconds);
  // An answer has ended.
  void observe_answer(const Sequence& sequence);

  // `unfinished`: every sequence, by id.
  void describe_load(std::span<const Sequence* const> unfinished, std::int32_t num_running, TimePoint now,
                     admission::LoadSnapshot& load);

 private:
  // Beside other tenants' streams a tenant's adapters take turns in its own part alone.
  bool adapters_change_steps() const { return fair_share_.num_unfinished_tenants() < 2; }
  double adapter_quantum_tokens(const admission::FairShare& adapters) const {
    return adapters.quantum_tokens(config_.waiting.tenant_quantum_tokens * fair_share_.turn_scale());
  }
  double quantum_tokens() const { return fair_share_.quantum_tokens(config_.waiting.tenant_quantum_tokens); }
  void scale_turns();
  double step_limit_ms(const admission::StepWork& decoding, TimePoint now) const;
  admission::StepRates step_rates(TimePoint now) const;
  void gather_prompts();
  bool has_long_prompt(TimePoint now);

  const SchedulerConfig& config_;
  const std::int32_t max_chunk_tokens_;
  const std::vector<Sequence*>& running_;
  const RequestQueue& waiting_;
  admission::FairShare fair_share_;
  admission::WaitingOrder waiting_order_;
  admission::StepTimeModel step_times_;
  admission::DecodeSkipBudget decode_skip_budget_;
  admission::OutputLengths answer_lengths_;      // of all tenants
  std::vector<Sequence*> prompts_;               // of gather_prompts()
  std::vector<admission::SequenceFacts> facts_;  // of prompts_; of describe_load() of all
};

}  // namespace kvasir::sched
