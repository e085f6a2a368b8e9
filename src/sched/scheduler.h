// Who runs which tokens, step by step.
//
// One sequence's life, for a newcomer:
//
//   add()       A request becomes num_choices sequences in the queue, or is refused when it could never fit.
//   schedule()  In its turn (waiting_order.h) a sequence takes a seat: it looks up the longest prefix
//   whose
//               KV is cached, takes those blocks by reference and so begins with num_computed_tokens > 0.
//               From then on each schedule() gives it some of its remaining tokens: a chunk of the prompt as
//               the token budget allows, later the one token it sampled last. Nothing distinguishes the two:
//               it just catches up.
//   (the model) Runs the tokens, writes their KV into the blocks named in its tables and, where `samples` is
//   set,
//               chooses the next token.
//   update()    Counts the tokens as computed, makes blocks that became full findable for others, frees what
//   left
//               a sliding window, appends the sampled token and checks whether that ends the sequence.
//   preempted   When a pool runs dry, a running sequence that comes later (victim.h) loses its blocks and
//   goes
//               back to the head of the queue. It keeps its tokens, generated ones included, and catches up
//               again later; what it cached may still be there.
//   the end     A stop token or max_tokens in update(), or finish() in any state: a stop string, a client
//   that
//               left, an error. Its blocks return last first. Each sequence ends exactly once.
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

#include "kv/kv_cache_manager.h"
#include "kvasir/ids.h"
#include "kvasir/result.h"
#include "sched/pace.h"
#include "sched/prefill_only_batch.h"
#include "sched/request_queue.h"
#include "sched/scheduler_output.h"
#include "sched/sequence.h"
#include "sched/skipped_streams.h"
#include "sched/start_forecast.h"
#include "sched/step_budget.h"
#include "sched/step_time_model.h"
#include "sched/tenant_ledger.h"
#include "sched/waiting_order.h"

namespace kvasir::sched {

struct SchedulerConfig {
  std::int32_t max_num_seqs = 16;             // running at once
  std::int32_t max_num_batched_tokens = 512;  // in one step, over all sequences
  std::int32_t max_chunk_tokens = 0;          // of one sequence in one step; 0: the whole step
  // How long a step may take that computes prompts beside streams that decode; 0: as long as it takes.
  double max_step_ms = 0.0;
  WaitingConfig waiting;
  double ttft_target_ms = 0.0;  // of class 0, see target_ms_of(); 0: none
  PrefillOnlyConfig prefill_only;
};

struct SchedulerStats {
  std::int32_t num_running = 0;
  std::int64_t num_running_tokens = 0;  // prompts and answers so far
  std::int32_t num_waiting = 0;
  std::optional<TimePoint> oldest_arrival;  // of those that wait
  std::int64_t num_steps = 0;               // schedule() calls that ran something
  std::int64_t num_scheduled_tokens = 0;
  std::int64_t num_preemptions = 0;
  std::int64_t num_kept_exact = 0;  // sequences whose KV policy was given up for want of room
  std::int64_t num_skips = 0;       // steps without the streams of those who have had more than their share
  std::int64_t num_expired = 0;
  std::int64_t num_hidden_rows_peak = 0;   // the most that a prefill-only batch has kept at once
  std::int64_t prefix_queries_tokens = 0;  // tokens of starting sequences that asked the prefix cache
  std::int64_t prefix_hits_tokens = 0;     // those found
};

// Deterministic and without a clock: the same calls with the same times give the same schedule.
//
// Thread safety: none; the engine thread is the only caller.
// Invariants: who runs is either in `running_` or in `prefill_only_`; `running_` is in RunsBefore order, and
// a preemption hits those behind that have nothing of the step; the stream that runs first always advances,
// or a prompt where there is none, or the prefill-only batch, so everyone gets a turn. Only for a prompt of a
// tenant that is owed may streams be left out of a step (skipped_streams.h), never of two in a row.
class Scheduler {
 public:
  // Error (kUsage) naming the field and both numbers.
  static Status validate(const SchedulerConfig& config);
  // Requires: validate(config) holds. `kv` is borrowed and must outlive the scheduler.
  Scheduler(const SchedulerConfig& config, kv::KvCacheManager& kv);

  // Queues the sequences of a request; choice i gets the returned id + i.
  // Errors: kUsage (empty prompt, bad counts), kUnmet (could never fit).
  Result<SequenceId> add(SequenceRequest request, TimePoint now);

  // Ends a sequence in any state, for a reason that only the caller knows, and frees its KV. False when it
  // has ended already or never was. Between schedule() and update() the result of its step is ignored.
  bool finish(SequenceId id);

  // Chooses the next step; an update() must follow before the next. Empty only when nothing is waiting or
  // running. Valid until that update().
  const SchedulerOutput& schedule(TimePoint now);

  // Takes in the results of the last schedule(). The updates, in the order of the schedule, borrow from
  // `result` and are valid until the next call.
  std::span<const SequenceUpdate> update(ModelStepResult& result, TimePoint now);
  // Guesses of the tokens that a running sequence generates next, instead of those it has; for its next step.
  // They may be cut there, and are forgotten when the sequence is preempted. Ignored for one that computes
  // its prompt or waits. Between update() and schedule().
  void set_draft(SequenceId id, std::span<const TokenId> token_ids);

  bool has_unfinished() const { return !sequences_.empty(); }
  SchedulerStats stats() const;
  // What steps take, as far as it is known; and what another scheduler knows of the same model, to begin
  // with.
  const StepTimeModel& step_times() const { return step_times_; }
  void begin_with(const StepTimeModel& step_times) { step_times_ = step_times; }
  // What runs and waits, for forecast_start(); between steps.
  void describe_load(LoadSnapshot& load) const;
  // Everything unfinished, by id.
  const std::map<SequenceId, Sequence>& sequences() const { return sequences_; }

 private:
  struct Ordered {
    bool is_running = false;
    bool is_long = false;
    WaitingKey key;
    std::int64_t urgent_class = 0;  // 0, or below it by value
    Sequence* sequence = nullptr;
    Sequence::Place place;  // where it is; its own but for urgent ones and who lent it
  };

  std::int32_t running_class(std::int32_t priority, TimePoint now) const;
  void expire_waiting(TimePoint now);
  StepWork decoding_work() const;
  double full_step_ms(std::int32_t answer_tokens) const;
  Pace pace() const;
  StepBudget open_budget() const;
  WaitingFacts facts_of(const Sequence& sequence, const Pace& pace, TimePoint now) const;
  WaitingConfig waiting_config() const;
  bool computes_prompts() const;
  void order_prompts(TimePoint now);
  void line_up_long();
  void order_urgent();
  void use_up_place(const Ordered& started);
  bool leaves_seat_to_others(const Sequence& sequence, std::int32_t num_tenants) const;
  void schedule_streams(StepBudget& budget);
  void schedule_prompts(StepBudget& budget, TimePoint now);
  void advance_in_order(StepBudget& budget, TimePoint now);
  std::int32_t num_reserved_seats(std::int32_t num_tenants) const;
  std::int32_t seat_share(std::int32_t num_tenants) const;
  double step_limit_ms(const StepWork& decoding) const;
  double owed_limit_ms() const;
  bool may_owe() const;
  bool is_owed(const Sequence& sequence) const;
  std::optional<StepWork> streams_of_owed(const Ordered& next) const;
  bool schedule_owed_prompt(TimePoint now);
  bool advance_owed_prompt(const Ordered& next, StepBudget& budget, TimePoint now);
  void describe_groups(LoadSnapshot& load) const;
  double target_ms(const Sequence& sequence) const;
  bool is_long(const Sequence& sequence, const Pace& pace) const;
  // Of a step in which nobody decodes.
  double alone_limit_ms() const;
  void describe_tenants(LoadSnapshot& load) const;
  void schedule_chunk(Sequence& sequence, StepBudget& budget);
  void schedule_drafts();
  bool start(Sequence& sequence, StepBudget& budget, TimePoint now);
  bool start_prefill_only(Sequence& sequence, TimePoint now);
  void mark_running(Sequence& sequence);
  std::int32_t num_running() const {
    return static_cast<std::int32_t>(running_.size()) + prefill_only_.size();
  }
  std::int32_t take_cached_prefix(Sequence& sequence);
  bool make_room(std::size_t index, std::int32_t num_tokens);
  void keep_exact(Sequence& sequence);
  void preempt(Sequence& sequence);
  void build_output();
  void schedule_prefill_only();
  void learn_step_time(TimePoint now);
  void demote_cells();
  void advance_prefill_only(Sequence& sequence, TimePoint now);
  void advance(Sequence& sequence, std::span<SampledToken> tokens, TimePoint now);
  std::optional<FinishReason> append_sampled(Sequence& sequence, std::span<const SampledToken> tokens);
  void remove(Sequence& sequence);

  const SchedulerConfig config_;
  const std::int32_t max_chunk_tokens_;
  kv::KvCacheManager& kv_;

  std::map<SequenceId, Sequence> sequences_;  // owns; addresses are stable
  TenantLedger tenants_;
  RequestQueue waiting_;
  std::vector<Ordered> ordered_;                    // of order_prompts(), kept for its memory
  std::vector<Ordered> urgent_;                     // of order_urgent(), likewise
  mutable std::vector<const Sequence*> described_;  // likewise, of describe_load()
  std::vector<Sequence*> running_;
  std::vector<Sequence*> candidates_;  // of make_room(), likewise
  SequenceId last_victim_{-1};
  bool has_preempted_ = false;  // in this step
  PrefillOnlyBatch prefill_only_;
  std::int64_t next_sequence_id_ = 0;
  SchedulerOutput output_;
  StepTimeModel step_times_;
  SkippedStreams skipped_streams_;
  OutputLengths answer_lengths_;  // of all tenants
  TimePoint step_began_;
  TimePoint now_;                         // of the last call that said
  std::vector<kv::SequenceKv*> wishing_;  // of demote_cells(), kept for its memory
  std::vector<SequenceUpdate> updates_;
  SchedulerStats stats_;
};

}  // namespace kvasir::sched
