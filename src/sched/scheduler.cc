#include "sched/scheduler.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "sched/start_conditions.h"
#include "sched/victim.h"

namespace kvasir::sched {
namespace {

// Room for this many generated tokens is made at once; longer outputs grow their list as they go.
constexpr std::int32_t kExpectedGeneratedTokens = 4096;
std::int32_t expected_tokens(const Sequence& sequence) {
  return sequence.num_prompt_tokens + std::min(sequence.stop.max_tokens, kExpectedGeneratedTokens);
}

}  // namespace

Scheduler::Scheduler(const SchedulerConfig& config, kv::KvCacheManager& kv)
    : config_(config),
      max_chunk_tokens_(config.effective_chunk_tokens()),
      kv_(kv),
      prefill_only_(config.prefill_only, max_chunk_tokens_),
      admission_(config_, running_, waiting_) {
  CHECK(config.validate().has_value());
  const auto max_num_seqs = static_cast<std::size_t>(config.max_num_seqs);
  running_.reserve(max_num_seqs);
  output_.sequences.reserve(max_num_seqs);
  updates_.reserve(max_num_seqs);
}

Result<SequenceId> Scheduler::add(SequenceRequest request, TimePoint now) {
  KVASIR_CHECKED(validate(request, config_));
  const bool is_prefill_only = may_be_prefill_only(request, kv_, config_.prefill_only.max_tokens);
  if (!is_prefill_only) KVASIR_CHECKED(check_can_ever_fit(request, kv_, max_chunk_tokens_));
  now_ = now;
  is_blocked_ = false;
  const SequenceId first{next_sequence_id_};
  for (std::int32_t choice = 0; choice < request.num_choices; ++choice) {
    const SequenceId id{next_sequence_id_++};
    Sequence& sequence = sequences_[id];
    sequence.id = id;
    sequence.request_id = request.request_id;
    sequence.choice = choice;
    sequence.priority = request.priority;
    sequence.num_prompt_tokens = static_cast<std::int32_t>(request.prompt_token_ids.size());
    sequence.stop = request.stop;
    sequence.token_ids.reserve(static_cast<std::size_t>(expected_tokens(sequence)));
    sequence.token_ids = request.prompt_token_ids;
    admission_.enter(sequence, request.tenant, request.adapter, now);
    // Tenants do not preempt each other's by calling their own urgent.
    sequence.running_class = admission_.is_shared(now) ? std::max(0, request.priority) : request.priority;
    sequence.cache_namespace = request.cache_namespace;
    sequence.use_prefix_cache = request.use_prefix_cache;
    sequence.expected_cached_tokens = request.expected_cached_tokens;
    sequence.kv_policy = request.kv_policy;
    sequence.client_id = request.client_id;
    sequence.want_prompt_logits = request.want_prompt_logits && choice == 0;
    sequence.num_prompt_logits = request.first_prompt_logits;
    sequence.is_prefill_only = is_prefill_only;
    sequence.start_deadline = request.start_deadline;
    sequence.times.arrived = now;
    sequence.place = {id, now};
    waiting_.push(&sequence);
  }
  return first;
}

void Scheduler::set_draft(SequenceId id, std::span<const TokenId> token_ids) {
  const auto found = sequences_.find(id);
  if (found == sequences_.end() || found->second.status != SequenceStatus::kRunning) return;
  if (found->second.is_decoding()) found->second.draft_token_ids.assign(token_ids.begin(), token_ids.end());
}

void Scheduler::hold(SequenceId id) {
  const auto found = sequences_.find(id);
  if (found != sequences_.end() && !std::exchange(found->second.is_held, true)) ++num_held_;
}

void Scheduler::release(SequenceId id) {
  const auto found = sequences_.find(id);
  if (found != sequences_.end() && std::exchange(found->second.is_held, false)) --num_held_;
  is_blocked_ = false;
}

bool Scheduler::finish(SequenceId id) {
  const auto found = sequences_.find(id);
  if (found == sequences_.end()) return false;
  remove(found->second);
  return true;
}

const SchedulerOutput& Scheduler::schedule(TimePoint now) {
  CHECK(output_.empty());
  step_began_ = now_ = now;
  has_preempted_ = false;
  expire_waiting(now);
  const bool skips_streams = schedule_underserved_prompt(now);
  if (!skips_streams) {
    StepBudget budget = open_budget();
    schedule_streams(budget);
    schedule_forced_runs(budget);
    schedule_prompts(budget, now);
    schedule_drafts();
  }
  admission_.count_step(skips_streams);
  stats_.num_skips += skips_streams ? 1 : 0;
  build_output();
  is_blocked_ = output_.empty() && num_held_ > 0;
  return output_;
}

void Scheduler::expire_waiting(TimePoint now) {
  output_.expired.clear();
  for (const Sequence* sequence : waiting_) {
    if (sequence->start_deadline && *sequence->start_deadline <= now) output_.expired.push_back(sequence->id);
  }
  for (const SequenceId id : output_.expired) finish(id);
  stats_.num_expired += static_cast<std::int64_t>(output_.expired.size());
}

StepBudget Scheduler::open_budget() {
  const admission::StepWork decoding = admission_.decoding_work();
  StepLimits limits = admission_.step_limits(decoding, now_);
  // Prompts that run all layers wait while they are ahead of the prefill-only batch.
  const bool streams_only = prefill_only_.is_owed_passes() ||
                            (admission_.streams_are_due() && decoding.num_decoding > 0);
  if (streams_only) limits.max_tokens = decoding.num_decoding;
  return {limits, decoding, admission_.step_times()};
}

void Scheduler::schedule_streams(StepBudget& budget) {
  streams_ = running_;  // make_room() may take sequences off
  for (Sequence* stream : streams_) {
    if (stream->status != SequenceStatus::kRunning || stream->is_held || !stream->is_decoding()) continue;
    if (make_room(*stream, 1)) stream->num_scheduled_tokens = 1;
  }
  // Every stream was preempted: prompts have the step to themselves, and preempted ones start anew in this
  // very step.
  if (std::ranges::none_of(running_, [](const Sequence* s) { return s->num_scheduled_tokens > 0; })) {
    budget = open_budget();
  }
}

// Streams that have more than a token to compute go before prompts: somebody reads their answers.
void Scheduler::schedule_forced_runs(StepBudget& budget) {
  if (std::ranges::none_of(running_, [](const Sequence* s) { return s->has_forced_run(); })) return;
  streams_ = running_;  // make_room() may take sequences off
  for (Sequence* stream : streams_) {
    if (stream->status != SequenceStatus::kRunning || stream->is_held || !stream->has_forced_run()) continue;
    const StepBudget budget_before = budget;
    const std::int32_t num_tokens = budget.take_forced_run(stream->num_remaining_tokens(), stream->num_computed_tokens);
    if (num_tokens > 0 && make_room(*stream, num_tokens)) {
      stream->num_scheduled_tokens = num_tokens;
    } else {
      budget = budget_before;
    }
  }
}

// False: the step is as any other. None is preempted for this one: a stream that finds no room is left out of it
// too.
bool Scheduler::schedule_underserved_prompt(TimePoint now) {
  if (!prefill_only_.empty() || !admission_.may_skip_streams(now)) return false;
  const std::span<const Ordered> ordered = admission_.order(now);
  if (ordered.empty()) return false;
  const Ordered& next = ordered.front();
  const std::optional<StepLimits> limits = admission_.limits_without_streams(next);
  if (!limits) return false;
  StepBudget budget(*limits, admission_.decoding_work(true), admission_.step_times());
  if (!advance_underserved_prompt(next, budget, now)) return false;
  const Sequence* prompt = &admission_.sequence_of(next);
  for (Sequence* stream : running_) {
    if (stream == prompt || stream->is_held || !stream->is_decoding()) continue;
    if (!admission_.is_underserved(*stream)) continue;
    if (kv_.allocate(stream->kv, stream->num_computed_tokens + 1)) stream->num_scheduled_tokens = 1;
  }
  return true;
}

bool Scheduler::advance_underserved_prompt(const Ordered& next, StepBudget& budget, TimePoint now) {
  Sequence& sequence = admission_.sequence_of(next);
  if (!next.is_running) {
    const bool starts = num_running() < config_.max_num_seqs &&
                        !admission_.leaves_seat(sequence, admission_.seats(now), num_running(), now) &&
                        !awaits_sibling(sequence, running_) && start(sequence, budget, now);
    if (starts) admission_.exchange_places(next);
    return starts;
  }
  const std::int32_t num_tokens = budget.take_chunk(sequence.num_remaining_tokens(),
                                                    sequence.num_computed_tokens);
  if (!kv_.allocate(sequence.kv, sequence.num_computed_tokens + num_tokens)) return false;
  sequence.num_scheduled_tokens = num_tokens;
  return true;
}

// Preempts sequences behind that have nothing of this step, or that are held, until the sequence has its
// blocks; false when none was left. Then it has to go itself, unless it is a prompt that may as well wait for
// blocks that others free.
bool Scheduler::make_room(Sequence& sequence, std::int32_t num_tokens) {
  while (!kv_.allocate(sequence.kv, sequence.num_computed_tokens + num_tokens)) {
    candidates_.clear();
    for (Sequence* other : running_) {
      const bool is_behind = RunsBefore{}(&sequence, other);
      const bool may_go = is_behind ? other->num_scheduled_tokens == 0 : other != &sequence && other->is_held;
      if (may_go) candidates_.push_back(other);
    }
    if (!candidates_.empty()) {
      preempt(choose_victim(candidates_, num_tokens, last_victim_));
      continue;
    }
    const bool others_run = std::ranges::any_of(
        running_, [](const Sequence* s) { return s->num_scheduled_tokens > 0; });
    if (others_run && !sequence.is_decoding()) return false;
    if (num_running() == 1) keep_exact(sequence);
    preempt(sequence);
    return false;
  }
  return true;
}

// The sequence has the cache to itself and yet no room: its cells of many formats lie so that the free memory
// between them is of no use. All of them in one format fit, or it would not have been admitted.
void Scheduler::keep_exact(Sequence& sequence) {
  sequence.kv_policy = {};
  ++stats_.num_kept_exact;
}

void Scheduler::freeze_kv(SequenceId id) {
  const auto found = sequences_.find(id);
  if (found == sequences_.end()) return;
  Sequence& sequence = found->second;
  if (sequence.status == SequenceStatus::kRunning) {
    kv::Demotion::freeze(sequence.kv);
  } else {
    sequence.kv_policy = {};
  }
}

void Scheduler::preempt(Sequence& sequence) {
  CHECK(sequence.num_scheduled_tokens == 0);
  std::erase(running_, &sequence);
  count_running(sequence, -1);
  last_victim_ = sequence.id;
  sequence.earlier_kv_bytes = sequence.earlier_kv_bytes.followed_by(sequence.kv.bytes_use);
  if (sequence.kv.is_frozen) sequence.kv_policy = {};
  kv_.free(sequence.kv);
  sequence.num_computed_tokens = 0;
  sequence.draft_token_ids.clear();
  sequence.status = SequenceStatus::kWaiting;
  sequence.has_yielded = false;
  waiting_.push(&sequence);
  has_preempted_ = true;
  ++sequence.num_preemptions;
  ++stats_.num_preemptions;
}

void Scheduler::schedule_prompts(StepBudget& budget, TimePoint now) {
  const bool has_candidates = num_running() < config_.max_num_seqs && !waiting_.empty();
  if (!has_candidates && !admission_.computes_prompts()) return;
  advance_in_order(budget, now);
  if (num_running() > 0 || waiting_.empty()) return;
  budget = open_budget();  // the last one was preempted: it starts anew in this very step
  advance_in_order(budget, now);
}

// No waiting sequence overtakes one that does not fit, or that one would starve. Sequences are passed over that
// are held, that await a sibling which is running, that await the end of a prefill-only batch, or that leave
// the last seats to other tenants. When the step has no tokens left, prefill-only sequences still start: theirs
// are apart.
void Scheduler::advance_in_order(StepBudget& budget, TimePoint now) {
  const admission::SeatReservation seats = admission_.seats(now);
  const std::int64_t num_preemptions = stats_.num_preemptions;
  bool may_start = true;
  for (const Ordered& next : admission_.order(now)) {
    Sequence& sequence = admission_.sequence_of(next);
    if (sequence.is_held) continue;
    if (next.is_running) {
      const bool is_due = sequence.status == SequenceStatus::kRunning && sequence.num_scheduled_tokens == 0;
      if (is_due) schedule_chunk(sequence, budget);
      continue;
    }
    // A sequence that was preempted in this step lets the others go on, and none overtakes it.
    const bool may_follow = num_running() == 0 ? stats_.num_preemptions == num_preemptions : !has_preempted_;
    may_start &= may_follow && num_running() < config_.max_num_seqs;
    if (!may_start || admission_.leaves_seat(sequence, seats, num_running(), now)) continue;
    if (sequence.is_prefill_only) {
      may_start = !prefill_only_.may_join(sequence) || start_prefill_only(sequence, now);
    } else if (budget.has_room() && !awaits_sibling(sequence, running_)) {
      may_start = start(sequence, budget, now);
    }
    if (sequence.status == SequenceStatus::kRunning) admission_.exchange_places(next);
  }
}

void Scheduler::schedule_chunk(Sequence& sequence, StepBudget& budget) {
  const StepBudget budget_before = budget;
  const std::int32_t num_tokens = budget.take_chunk(
      sequence.num_remaining_tokens(), sequence.num_computed_tokens, admission_.is_underserved(sequence));
  if (num_tokens == 0) return;
  if (make_room(sequence, num_tokens)) {
    sequence.num_scheduled_tokens = num_tokens;
  } else {
    budget = budget_before;
  }
}

kv::SequenceKv Scheduler::open_kv(const Sequence& sequence) {
  const auto prompt = std::span(sequence.token_ids).first(static_cast<std::size_t>(sequence.num_prompt_tokens));
  kv::SequenceKv kv = kv_.open({sequence.cache_namespace, sequence.account->name, prompt}, sequence.use_prefix_cache,
                               expected_tokens(sequence), sequence.kv_policy);
  kv.holder = sequence.kv_holder();
  return kv;
}

bool Scheduler::start(Sequence& sequence, StepBudget& budget, TimePoint now) {
  sequence.kv = open_kv(sequence);
  std::int32_t num_cached = take_cached_prefix(sequence, running_, kv_);
  if (sequence.kv.is_borrowing() && !kv_fits(sequence, running_, kv_, max_chunk_tokens_)) {
    // Both what is borrowed and its copies need room.
    kv_.free(sequence.kv);
    sequence.kv = open_kv(sequence);
    kv_.borrow_nothing(sequence.kv);
    num_cached = take_cached_prefix(sequence, running_, kv_);
  }
  if (!kv_fits(sequence, running_, kv_, max_chunk_tokens_)) {
    kv_.free(sequence.kv);
    return false;
  }
  const StepBudget budget_before = budget;
  sequence.num_computed_tokens = sequence.first_position = num_cached;
  sequence.num_scheduled_tokens = budget.take_chunk(sequence.num_remaining_tokens(), num_cached,
                                                    admission_.is_underserved(sequence));
  const std::int32_t end = num_cached + sequence.num_scheduled_tokens;
  if (end > num_cached) kv_.act_on_found_prefix(sequence.kv);
  if (end == num_cached || !kv_.allocate(sequence.kv, end)) {
    // It runs whole and does not fit; or what is free of the blocks' memory lies between cells of other formats.
    kv_.free(sequence.kv);
    sequence.num_computed_tokens = sequence.num_scheduled_tokens = 0;
    budget = budget_before;
    if (num_running() > 0 || !sequence.kv_policy.is_lossy()) return false;
    keep_exact(sequence);
    return start(sequence, budget, now);
  }
  if (!sequence.times.started) {
    sequence.times.started = now;
    sequence.num_cached_tokens = num_cached;
    const bool asked_cache = sequence.kv.cursor != kv::kNoPrefixNode;
    stats_.prefix_queries_tokens += asked_cache ? sequence.num_prompt_tokens : 0;
    stats_.prefix_hits_tokens += asked_cache ? num_cached : 0;
    kv_.count_hits(sequence.kv);
  }
  mark_running(sequence);
  running_.insert(std::ranges::upper_bound(running_, &sequence, RunsBefore{}), &sequence);
  return true;
}

// The request has begun: neither its other choices nor, when it is preempted, this one expire.
void Scheduler::mark_running(Sequence& sequence) {
  for (Sequence* waiting : waiting_) {
    if (waiting->request_id == sequence.request_id) waiting->start_deadline.reset();
  }
  waiting_.remove(&sequence);
  sequence.status = SequenceStatus::kRunning;
  count_running(sequence, 1);
}

bool Scheduler::start_prefill_only(Sequence& sequence, TimePoint now) {
  if (!kv_fits(sequence, running_, kv_, max_chunk_tokens_)) return false;
  sequence.kv = kv_.open({sequence.cache_namespace, sequence.account->name, {}}, false, 0);
  if (!kv_.prefill_only().allocate(sequence.kv, sequence.num_tokens())) {
    kv_.free(sequence.kv);  // the free memory lies between cells of other formats
    return false;
  }
  sequence.times.started = now;
  mark_running(sequence);
  prefill_only_.join(sequence);
  stats_.num_hidden_rows_peak = std::max<std::int64_t>(stats_.num_hidden_rows_peak, prefill_only_.num_rows());
  return true;
}

// Guesses come last: they take what is left of max_num_batched_tokens, and blocks that are empty. For them no cached
// block goes and no sequence is preempted. Guesses behind the last token of the answer could not count. Whether they
// fit the step's time is the caller's to decide, but beside a prompt they would only delay it: its rows keep the
// processor busy, so that a guessed row costs as much as one of the prompt.
void Scheduler::schedule_drafts() {
  const auto is_prompt = [](const Sequence* s) { return s->num_scheduled_tokens > 0 && !s->has_computed_prompt(); };
  if (std::ranges::any_of(running_, is_prompt)) return;
  std::int32_t num_left = config_.max_num_batched_tokens;
  for (const Sequence* sequence : running_) num_left -= sequence->num_scheduled_tokens;
  for (Sequence* sequence : running_) {
    if (sequence->draft_token_ids.empty() || sequence->num_scheduled_tokens == 0) continue;
    if (!sequence->is_decoding() || sequence->awaits_prompt_logits()) continue;
    const std::int32_t num_countable = sequence->stop.max_tokens - sequence->num_generated_tokens() - 1;
    const std::int32_t num_asked = std::min({static_cast<std::int32_t>(sequence->draft_token_ids.size()),
                                             num_countable, num_left, max_chunk_tokens_ - 1});
    if (num_asked <= 0) continue;
    const std::int32_t num_fitting = kv_.allocate_empty(sequence->kv, sequence->num_tokens() + num_asked) -
                                     sequence->num_tokens();
    sequence->num_scheduled_draft_tokens = std::min(num_asked, num_fitting);
    num_left -= sequence->num_scheduled_draft_tokens;
  }
}

void Scheduler::build_output() {
  output_.num_tokens = 0;
  output_.conversions = &kv_.cells().conversions();
  for (Sequence* sequence : running_) {
    if (sequence->num_scheduled_tokens == 0) continue;
    output_.sequences.push_back(sequence->scheduled_part());
    output_.num_tokens += output_.sequences.back().num_tokens;
    stats_.num_scheduled_tokens += sequence->num_scheduled_tokens;
  }
  output_.num_whole = output_.sequences.size();
  if (!prefill_only_.empty()) schedule_prefill_only();
  stats_.num_steps += output_.empty() ? 0 : 1;
}

void Scheduler::schedule_prefill_only() {
  for (const ScheduledSequence& s : output_.sequences) {
    prefill_only_.note_prompt_tokens(s.is_decoding() ? 0 : s.num_tokens);
  }
  prefill_only_.schedule(output_);
}

void Scheduler::describe_load(admission::LoadSnapshot& load) {
  unfinished_.clear();
  for (const auto& [id, sequence] : sequences_) unfinished_.push_back(&sequence);
  admission_.describe_load(unfinished_, num_running(), now_, load);
}

SchedulerStats Scheduler::stats() const {
  SchedulerStats stats = stats_;
  stats.num_running = num_running();
  for (const Sequence* sequence : running_) stats.num_running_tokens += sequence->num_tokens();
  stats.num_waiting = static_cast<std::int32_t>(waiting_.size());
  for (const Sequence* sequence : waiting_) {
    const TimePoint arrived = sequence->times.arrived;
    stats.oldest_arrival = std::min(stats.oldest_arrival.value_or(arrived), arrived);
  }
  return stats;
}

}  // namespace kvasir::sched
