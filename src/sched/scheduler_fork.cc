// Scheduler::fork() and what goes with it: sequences of one request that go on from another one's tokens, as beams do.
#include "base/check.h"
#include "sched/scheduler.h"

namespace kvasir::sched {

void Scheduler::set_last_token(SequenceId id, TokenId token) {
  Sequence& sequence = sequences_.at(id);
  CHECK(sequence.num_generated_tokens() > 0 && sequence.num_computed_tokens < sequence.num_tokens());
  sequence.token_ids.back() = token;
}

void Scheduler::fork(SequenceId from_id, SequenceId to_id, TokenId token) {
  const Sequence& from = sequences_.at(from_id);
  Sequence& to = sequences_.at(to_id);
  CHECK(&from != &to && from.request_id == to.request_id && !from.kv_policy.is_lossy());
  to.token_ids = from.token_ids;
  to.token_ids.back() = token;
  to.draft_token_ids.clear();
  if (to.status == SequenceStatus::kWaiting) return;  // it finds what is cached when it starts
  kv_.free(to.kv);
  to.kv = open_kv(to);
  const bool has_kv = from.status == SequenceStatus::kRunning;
  to.num_computed_tokens = has_kv ? kv_.fork(from.kv, to.kv, from.num_computed_tokens) : 0;
  to.first_position = to.num_computed_tokens;
}

void Scheduler::yield(SequenceId id) {
  Sequence& sequence = sequences_.at(id);
  is_blocked_ = false;
  if (sequence.status == SequenceStatus::kRunning) preempt(sequence);
}

}  // namespace kvasir::sched
