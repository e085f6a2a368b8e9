// Scheduler: what a tenant gets that is owed a turn.
#include <algorithm>

#include "sched/admission.h"
#include "sched/scheduler.h"

namespace kvasir::sched {
namespace {

// Of max_step_ms, 75 in the server. For the prompt of a tenant that is owed, a step beside all streams: they
// give some of their time.
constexpr double kOwedStep = 1.2;
// And what a stream waits that is left out: this step and the next, as they are expected to take.
constexpr double kLongestWait = 2.0;

}  // namespace

bool Scheduler::is_owed(const Sequence& sequence) const {
  return config_.waiting.policy == WaitingPolicy::kSloValue &&
         tenants_.is_owed(*sequence.account, waiting_config().tenant_quantum_tokens);
}

double Scheduler::owed_limit_ms() const { return kOwedStep * config_.max_step_ms; }

bool Scheduler::may_owe() const {
  return config_.waiting.policy == WaitingPolicy::kSloValue &&
         tenants_.may_owe(waiting_config().tenant_quantum_tokens, now_);
}

// Half as long where a tenant may come that is owed a turn, so that it need not wait long for the step that
// runs; but so much that prompts get as much of it as the streams.
double Scheduler::step_limit_ms(const StepWork& decoding) const {
  constexpr double kReadyStep = 0.5;
  if (!may_owe()) return config_.max_step_ms;
  return std::clamp(2 * step_times_.predict_ms(decoding), kReadyStep * config_.max_step_ms,
                    config_.max_step_ms);
}

// The streams that stay in the step which computes the rest of the prompt that is next, less of it where less
// is cached than was expected: those of tenants that are owed. None where the others need not be left out,
// for the prompt fits beside them, or would wait too long.
std::optional<StepWork> Scheduler::streams_of_owed(const Ordered& next) const {
  const Sequence& sequence = *next.sequence;
  if (sequence.is_prefill_only || !is_owed(sequence)) return std::nullopt;
  StepWork all = decoding_work();
  StepWork owed;
  for (const Sequence* stream : running_) {
    if (stream->is_decoding() && is_owed(*stream)) owed.add_decoding(stream->num_computed_tokens);
  }
  const std::int32_t first =
      next.is_running ? sequence.num_computed_tokens : sequence.expected_first_position();
  const std::int32_t rest = sequence.num_tokens() - first;
  if (owed.num_decoding == all.num_decoding || rest > max_chunk_tokens_ ||
      rest + owed.num_decoding > config_.max_num_batched_tokens) {
    return std::nullopt;
  }
  all.add_chunk(first, rest);
  const double wait_ms = step_times_.predict_ms(all);
  if (wait_ms <= owed_limit_ms() || wait_ms > kLongestWait * config_.max_step_ms) return std::nullopt;
  return owed;
}

// False: the step is as any other. Nobody is preempted for this one: a stream that finds no room is left out
// of it too.
bool Scheduler::schedule_owed_prompt(TimePoint now) {
  if (config_.max_step_ms == 0.0 || !skipped_streams_.may_skip() || !prefill_only_.empty() || !may_owe()) {
    return false;
  }
  order_prompts(now);
  if (ordered_.empty()) return false;
  const Ordered next = ordered_.front();
  const std::optional<StepWork> streams = streams_of_owed(next);
  if (!streams) return false;
  const double others_ms = step_times_.predict_ms(decoding_work()) - step_times_.predict_ms(*streams);
  const double max_ms = kLongestWait * config_.max_step_ms - others_ms;
  StepBudget budget({.max_tokens = config_.max_num_batched_tokens,
                     .max_chunk_tokens = max_chunk_tokens_,
                     .max_ms = max_ms,
                     .owed_ms = max_ms},
                    *streams, step_times_);
  if (!advance_owed_prompt(next, budget, now)) return false;
  for (Sequence* stream : running_) {
    const bool runs = stream != next.sequence && stream->is_decoding() && is_owed(*stream);
    if (runs && kv_.allocate(stream->kv, stream->num_computed_tokens + 1)) stream->num_scheduled_tokens = 1;
  }
  return true;
}

bool Scheduler::advance_owed_prompt(const Ordered& next, StepBudget& budget, TimePoint now) {
  Sequence& sequence = *next.sequence;
  if (!next.is_running) {
    const bool starts = num_running() < config_.max_num_seqs &&
                        !leaves_seat_to_others(sequence, tenants_.num_present(now)) &&
                        !awaits_sibling(sequence, running_) && start(sequence, budget, now);
    if (starts) use_up_place(next);
    return starts;
  }
  const std::int32_t num_tokens =
      budget.take_chunk(sequence.num_remaining_tokens(), sequence.num_computed_tokens);
  if (!kv_.allocate(sequence.kv, sequence.num_computed_tokens + num_tokens)) return false;
  sequence.num_scheduled_tokens = num_tokens;
  return true;
}

}  // namespace kvasir::sched
