// Decides which sequences run which tokens, step by step. Mechanism alone: the order of waiting sequences, the
// length of steps and fairness are asked of src/admission.
//
// One sequence's life, for a newcomer:
//
//   add()       A request becomes num_choices sequences in the queue, or is refused when it could never fit.
//   schedule()  In its turn (admission/waiting_order.h) a sequence takes a seat: it looks up the longest prefix
//               whose KV is cached, takes those blocks by reference and so begins with num_computed_tokens > 0.
//               From then on each schedule() gives it some of its remaining tokens: a chunk of the prompt as
//               the token budget allows, later the one token it sampled last, or a run that a guide forced behind
//               it. Nothing distinguishes these: it just catches up.
//   (the model) Runs the tokens, writes their KV into the blocks named in its tables and, where `samples`
//               is set, chooses the next token.
//   update()    Counts the tokens as computed, makes blocks that became full findable for others, frees
//               blocks that left a sliding window, appends the sampled token and checks whether that ends
//               the sequence.
//   preempted   When a pool runs dry, a running sequence that comes later (victim.h) loses its blocks and
//               goes back to the head of the queue. It keeps its tokens, generated ones included, and catches
//               up again later; its cached blocks may still be there.
//   the end     A stop token or max_tokens in update(), or finish() in any state: a stop string, a client
//               that left, an error. Its blocks return last first. Each sequence ends exactly once.
//
// A sequence that wants only its prompt, and nothing of it kept, runs layer by layer instead
// (prefill_only_batch.h): it waits in the same queue and takes a seat, but is never preempted.
//
// Choices of one request share the prompt: one computes it, the others wait, take its full blocks by
// reference and recompute the tail of at most 16 tokens. Nothing is copied.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "admission/load_snapshot.h"
#include "admission/step_time_model.h"
#include "kv/kv_cache_manager.h"
#include "kvasir/ids.h"
#include "kvasir/result.h"
#include "sched/admission_policy.h"
#include "sched/prefill_only_batch.h"
#include "sched/request_queue.h"
#include "sched/scheduler_config.h"
#include "sched/scheduler_output.h"
#include "sched/sequence.h"
#include "sched/step_budget.h"

namespace kvasir::sched {

// Deterministic and without a clock: the same calls with the same times give the same schedule.
//
// Thread safety: none; the engine thread is the only caller. Invariants: a running sequence is either in
// `running_` or in `prefill_only_`; `running_` is in RunsBefore order, and a preemption hits sequences behind
// that have nothing of the step, or that are held. The stream that runs first always advances, or a prompt
// where there is none, or the prefill-only batch, so every sequence gets a turn. Only for the prompt of an
// underserved tenant may streams be left out of a step (admission/decode_skip_budget.h), never twice in a
// row.
class Scheduler {
 public:
  // Requires: config.validate() holds. `kv` is borrowed and must outlive the scheduler.
  Scheduler(const SchedulerConfig& config, kv::KvCacheManager& kv);

  // Queues the sequences of a request; choice i gets the returned id + i.
  // Errors: kUsage (empty prompt, bad counts), kUnmet (could never fit).
  Result<SequenceId> add(SequenceRequest request, TimePoint now);

  // Ends a sequence in any state, for a reason that only the caller knows, and frees its KV. False when it
  // has ended already or never was. Between schedule() and update() the result of its step is ignored.
  bool finish(SequenceId id);

  // Chooses the next step; an update() must follow before the next. Empty when nothing can run:
  // nothing is there, or all of it is held. Valid until that update().
  const SchedulerOutput& schedule(TimePoint now);

  // Takes in the results of the last schedule(). The updates, in the order of the schedule, borrow from
  // `result` and are valid until the next call.
  std::span<const SequenceUpdate> update(ModelStepResult& result, TimePoint now);

  // Guesses of the tokens that a running sequence generates next, instead of those it has; for its next step.
  // They may be cut there, and are forgotten when the sequence is preempted. Ignored for one that computes
  // its prompt or waits. Between update() and schedule().
  void set_draft(SequenceId id, std::span<const TokenId> token_ids);

  // A held sequence runs nothing until it is released: its guide compiles, its mask is late, its adapter loads.
  // A waiting one is passed over; a running one keeps its seat and its KV, but goes first when blocks run out.
  // Between update() and schedule(). Ignored for a sequence that has ended.
  void hold(SequenceId id);
  void release(SequenceId id);

  // Its KV policy does nothing any more. Running, it keeps its KV as it is; where it starts later, nothing becomes lossy.
  // Between update() and schedule(). Ignored for a sequence that has ended.
  void freeze_kv(SequenceId id);

  // Another newest token, which no step has run. Between update() and schedule().
  void set_last_token(SequenceId id, TokenId token);
  // `to` goes on as `from` does, but for its newest token: the tokens, and the KV as far as there is room for a copy of its
  // last block. The KV that `to` had is given up. Of one request without a policy; between update() and schedule().
  void fork(SequenceId from, SequenceId to, TokenId token);
  // Gives up the seat and the KV of a sequence that runs; it takes its turn again. Between update() and schedule().
  void yield(SequenceId id);

  bool has_unfinished() const { return !sequences_.empty(); }
  // False: nothing runs until a sequence is added, released or finished.
  bool has_runnable() const { return num_held_ < sequences_.size() && !is_blocked_; }
  SchedulerStats stats() const;
  // The known times of steps; and those that another scheduler has learned of the same model, to begin with.
  const admission::StepTimeModel& step_times() const { return admission_.step_times(); }
  void begin_with(const admission::StepTimeModel& step_times) { admission_.begin_with(step_times); }
  // Describes running and waiting sequences, for estimate_ttft(); between steps.
  void describe_load(admission::LoadSnapshot& load);
  // Everything unfinished, by id.
  const std::map<SequenceId, Sequence>& sequences() const { return sequences_; }

 private:
  using Ordered = AdmissionPolicy::Ordered;

  // The parts of schedule().
  void expire_waiting(TimePoint now);
  StepBudget open_budget();
  void schedule_streams(StepBudget& budget);
  void schedule_forced_runs(StepBudget& budget);
  void schedule_prompts(StepBudget& budget, TimePoint now);
  void advance_in_order(StepBudget& budget, TimePoint now);
  bool schedule_underserved_prompt(TimePoint now);
  bool advance_underserved_prompt(const Ordered& next, StepBudget& budget, TimePoint now);
  void schedule_chunk(Sequence& sequence, StepBudget& budget);
  void schedule_drafts();
  void schedule_prefill_only();
  void build_output();

  // Seats and KV.
  bool start(Sequence& sequence, StepBudget& budget, TimePoint now);
  bool start_prefill_only(Sequence& sequence, TimePoint now);
  void mark_running(Sequence& sequence);
  static void count_running(Sequence& sequence, std::int32_t change) {
    sequence.account->num_running += change;
    sequence.adapter_account->num_running += change;
  }
  kv::SequenceKv open_kv(const Sequence& sequence);
  bool make_room(Sequence& sequence, std::int32_t num_tokens);
  void keep_exact(Sequence& sequence);
  void preempt(Sequence& sequence);
  std::int32_t num_running() const {
    return static_cast<std::int32_t>(running_.size()) + prefill_only_.size();
  }

  // The parts of update().
  void advance_prefill_only(Sequence& sequence, TimePoint now);
  void advance(Sequence& sequence, std::span<SampledToken> tokens, std::int32_t num_forced, TimePoint now);
  void demote_cells();
  void remove(Sequence& sequence);

  const SchedulerConfig config_;
  const std::int32_t max_chunk_tokens_;
  kv::KvCacheManager& kv_;

  std::map<SequenceId, Sequence> sequences_;  // owns; addresses are stable
  std::size_t num_held_ = 0;
  bool is_blocked_ = false;  // by held sequences: the last schedule() was empty
  RequestQueue waiting_;
  std::vector<Sequence*> running_;
  PrefillOnlyBatch prefill_only_;
  std::vector<Sequence*> streams_;     // of schedule_streams(), kept for its memory
  std::vector<Sequence*> candidates_;  // of make_room(), likewise
  SequenceId last_victim_{-1};
  bool has_preempted_ = false;  // in this step
  std::int64_t next_sequence_id_ = 0;

  AdmissionPolicy admission_;
  std::vector<const Sequence*> unfinished_;  // of describe_load(), kept for its memory

  SchedulerOutput output_;
  TimePoint step_began_;
  TimePoint now_;                         // of the last call that said
  std::vector<kv::SequenceKv*> pending_;  // of demote_cells(), kept for its memory
  std::vector<SequenceUpdate> updates_;
  SchedulerStats stats_;
};

}  // namespace kvasir::sched
