#include "sched/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "sched/admission.h"
#include "sched/victim.h"

namespace kvasir::sched {
namespace {

// Room for this many generated tokens is made at once; longer outputs grow their list as they go.
constexpr std::int32_t kExpectedGeneratedTokens = 4096;

std::int32_t effective_chunk(const SchedulerConfig& config) {
  if (config.max_chunk_tokens == 0) return config.max_num_batched_tokens;
  return std::min(config.max_chunk_tokens, config.max_num_batched_tokens);
}

std::int32_t expected_tokens(const Sequence& sequence) {
  return sequence.num_prompt_tokens + std::min(sequence.stop.max_tokens, kExpectedGeneratedTokens);
}

Status validate_request(const SequenceRequest& request) {
  const auto refuse = [](const char* field, std::int32_t minimum, std::int64_t actual) {
    return make_error(ErrorKind::kUsage,
                      fmt::format("{} must be at least {}, got {}", field, minimum, actual), field);
  };
  if (request.prompt_token_ids.empty()) {
    return make_error(ErrorKind::kUsage, "prompt must have at least 1 token, got 0", "prompt");
  }
  if (request.num_choices < 1) return refuse("n", 1, request.num_choices);
  if (request.stop.max_tokens < 0) return refuse("max_tokens", 0, request.stop.max_tokens);
  if (request.stop.min_tokens < 0) return refuse("min_tokens", 0, request.stop.min_tokens);
  return {};
}

}  // namespace

Status Scheduler::validate(const SchedulerConfig& config) {
  if (config.max_num_seqs < 1) {
    return make_error(ErrorKind::kUsage,
                      fmt::format("max_num_seqs must be at least 1, got {}", config.max_num_seqs),
                      "max_num_seqs");
  }
  if (config.max_num_batched_tokens < config.max_num_seqs) {
    return make_error(ErrorKind::kUsage,
                      fmt::format("max_num_batched_tokens must be at least max_num_seqs ({}), got {}",
                                  config.max_num_seqs, config.max_num_batched_tokens),
                      "max_num_batched_tokens");
  }
  if (config.max_chunk_tokens < 0) {
    return make_error(ErrorKind::kUsage,
                      fmt::format("max_chunk_tokens must be at least 0, got {}", config.max_chunk_tokens),
                      "max_chunk_tokens");
  }
  if (!(config.max_step_ms >= 0.0)) {
    return make_error(ErrorKind::kUsage,
                      fmt::format("max_step_ms must be at least 0, got {}", config.max_step_ms),
                      "max_step_ms");
  }
  return {};
}

Scheduler::Scheduler(const SchedulerConfig& config, kv::KvCacheManager& kv)
    : config_(config),
      max_chunk_tokens_(effective_chunk(config)),
      kv_(kv),
      prefill_only_(config.prefill_only, max_chunk_tokens_) {
  CHECK(validate(config).has_value());
  const auto max_num_seqs = static_cast<std::size_t>(config.max_num_seqs);
  running_.reserve(max_num_seqs);
  output_.sequences.reserve(max_num_seqs);
  updates_.reserve(max_num_seqs);
}

Result<SequenceId> Scheduler::add(SequenceRequest request, TimePoint now) {
  KVASIR_CHECKED(validate_request(request));
  const bool is_prefill_only = may_be_prefill_only(request, kv_, config_.prefill_only.max_tokens);
  if (!is_prefill_only) KVASIR_CHECKED(check_can_ever_fit(request, kv_, max_chunk_tokens_));
  now_ = now;
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
    sequence.account = &tenants_.enter(request.tenant, now);
    sequence.running_class = running_class(request.priority, now);
    sequence.cache_namespace = request.cache_namespace;
    sequence.use_prefix_cache = request.use_prefix_cache;
    sequence.expected_cached_tokens = request.expected_cached_tokens;
    sequence.kv_policy = request.kv_policy;
    sequence.client_id = request.client_id;
    sequence.want_prompt_logits = request.want_prompt_logits && choice == 0;
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
  const bool serves_owed = schedule_owed_prompt(now);
  if (!serves_owed) {
    StepBudget budget = open_budget();
    schedule_streams(budget);
    schedule_prompts(budget, now);
    schedule_drafts();
  }
  skipped_streams_.count(serves_owed);
  stats_.num_skips += serves_owed ? 1 : 0;
  build_output();
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

StepBudget Scheduler::open_budget() const {
  const StepWork decoding = decoding_work();
  StepLimits limits{.max_tokens = config_.max_num_batched_tokens, .max_chunk_tokens = max_chunk_tokens_};
  // Prompts that run all layers wait while they are ahead of the prefill-only batch.
  const bool streams_only =
      prefill_only_.is_owed_passes() || (skipped_streams_.are_due() && decoding.num_decoding > 0);
  if (streams_only) limits.max_tokens = decoding.num_decoding;
  if (config_.max_step_ms > 0.0 && decoding.num_decoding > 0) {
    limits.max_ms = step_limit_ms(decoding);
    limits.owed_ms = owed_limit_ms();
  }
  if (decoding.num_decoding == 0) limits.max_ms = limits.owed_ms = alone_limit_ms();
  return {limits, decoding, step_times_};
}

void Scheduler::schedule_streams(StepBudget& budget) {
  // By index: make_room() may take sequences off the end.
  for (std::size_t i = 0; i < running_.size(); ++i) {
    Sequence& sequence = *running_[i];
    if (sequence.is_decoding() && make_room(i, 1)) sequence.num_scheduled_tokens = 1;
  }
  // Every stream had to go: prompts have the step to themselves, and who went starts anew in this very step.
  if (std::ranges::none_of(running_, [](const Sequence* s) { return s->num_scheduled_tokens > 0; })) {
    budget = open_budget();
  }
}

// Preempts those behind that have nothing of this step until the sequence has its blocks; false when there
// was nobody left. Then it has to go itself, unless it is a prompt that may as well wait for what others
// free.
bool Scheduler::make_room(std::size_t index, std::int32_t num_tokens) {
  Sequence& sequence = *running_[index];
  while (!kv_.allocate(sequence.kv, sequence.num_computed_tokens + num_tokens)) {
    candidates_.clear();
    std::ranges::copy_if(std::span(running_).subspan(index + 1), std::back_inserter(candidates_),
                         [](const Sequence* s) { return s->num_scheduled_tokens == 0; });
    if (!candidates_.empty()) {
      preempt(choose_victim(candidates_, num_tokens, last_victim_));
      continue;
    }
    const bool others_run =
        std::ranges::any_of(running_, [](const Sequence* s) { return s->num_scheduled_tokens > 0; });
    if (others_run && !sequence.is_decoding()) return false;
    if (num_running() == 1) keep_exact(sequence);
    preempt(sequence);
    return false;
  }
  return true;
}

// Of a sequence that has the cache to itself and yet no room: its cells of many formats lie so that what is
// free between them is of no use. All of them in one format fit, or it would not have been admitted.
void Scheduler::keep_exact(Sequence& sequence) {
  sequence.kv_policy = {};
  ++stats_.num_kept_exact;
}

void Scheduler::preempt(Sequence& sequence) {
  CHECK(sequence.num_scheduled_tokens == 0);
  std::erase(running_, &sequence);
  --sequence.account->num_running;
  last_victim_ = sequence.id;
  sequence.earlier_kv_bytes = sequence.earlier_kv_bytes.followed_by(sequence.kv.bytes_use);
  kv_.free(sequence.kv);
  sequence.num_computed_tokens = 0;
  sequence.draft_token_ids.clear();
  sequence.status = SequenceStatus::kWaiting;
  sequence.has_lent_turn = false;
  waiting_.push(&sequence);
  has_preempted_ = true;
  ++sequence.num_preemptions;
  ++stats_.num_preemptions;
}

void Scheduler::schedule_prompts(StepBudget& budget, TimePoint now) {
  const bool has_candidates = num_running() < config_.max_num_seqs && !waiting_.empty();
  if (!has_candidates && !computes_prompts()) return;
  advance_in_order(budget, now);
  if (num_running() > 0 || waiting_.empty()) return;
  budget = open_budget();  // the last one had to go: it starts anew in this very step, else nobody would run
  advance_in_order(budget, now);
}

// In order, and nobody who waits overtakes a sequence that does not fit: it would starve. One that awaits its
// sibling is passed over, because the sibling is running; so is one that awaits the end of a prefill-only
// batch, and one that leaves the last seats to other tenants. When the step has no tokens left, prefill-only
// sequences still start: theirs are apart.
void Scheduler::advance_in_order(StepBudget& budget, TimePoint now) {
  order_prompts(now);
  const std::int32_t num_tenants = tenants_.num_present(now);
  const std::int64_t num_preemptions = stats_.num_preemptions;
  bool may_start = true;
  for (const Ordered& next : ordered_) {
    Sequence& sequence = *next.sequence;
    if (next.is_running) {
      if (sequence.status == SequenceStatus::kRunning) schedule_chunk(sequence, budget);
      continue;
    }
    // Who had to go in this step lets the others go on, and nobody overtakes it.
    const bool may_follow = num_running() == 0 ? stats_.num_preemptions == num_preemptions : !has_preempted_;
    may_start &= may_follow && num_running() < config_.max_num_seqs;
    if (!may_start || leaves_seat_to_others(sequence, num_tenants)) continue;
    if (sequence.is_prefill_only) {
      may_start = !prefill_only_.may_join(sequence) || start_prefill_only(sequence, now);
    } else if (budget.has_room() && !awaits_sibling(sequence, running_)) {
      may_start = start(sequence, budget, now);
    }
    if (sequence.status == SequenceStatus::kRunning) use_up_place(next);
  }
}

void Scheduler::schedule_chunk(Sequence& sequence, StepBudget& budget) {
  const auto place = std::ranges::lower_bound(running_, &sequence, RunsBefore{}) - running_.begin();
  const StepBudget budget_before = budget;
  const std::int32_t num_tokens =
      budget.take_chunk(sequence.num_remaining_tokens(), sequence.num_computed_tokens, is_owed(sequence));
  if (num_tokens == 0) return;
  if (make_room(static_cast<std::size_t>(place), num_tokens)) {
    sequence.num_scheduled_tokens = num_tokens;
  } else {
    budget = budget_before;
  }
}

bool Scheduler::start(Sequence& sequence, StepBudget& budget, TimePoint now) {
  const auto prompt =
      std::span(sequence.token_ids).first(static_cast<std::size_t>(sequence.num_prompt_tokens));
  sequence.kv = kv_.open({sequence.cache_namespace, sequence.account->name, prompt},
                         sequence.use_prefix_cache, expected_tokens(sequence), sequence.kv_policy);
  sequence.kv.holder = sequence.kv_holder();
  const std::int32_t num_cached = take_cached_prefix(sequence);
  if (!kv_fits(sequence, running_, kv_, max_chunk_tokens_)) {
    kv_.free(sequence.kv);
    return false;
  }
  const StepBudget budget_before = budget;
  sequence.num_computed_tokens = sequence.first_position = num_cached;
  sequence.num_scheduled_tokens =
      budget.take_chunk(sequence.num_remaining_tokens(), num_cached, is_owed(sequence));
  if (!kv_.allocate(sequence.kv, num_cached + sequence.num_scheduled_tokens)) {
    // There are blocks, but what is free of their memory lies between cells of other formats.
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
  ++sequence.account->num_running;
}

bool Scheduler::start_prefill_only(Sequence& sequence, TimePoint now) {
  if (!kv_fits(sequence, running_, kv_, max_chunk_tokens_)) return false;
  sequence.kv = kv_.open({sequence.cache_namespace, sequence.account->name, {}}, false, 0);
  if (!kv_.allocate_one_layer(sequence.kv, sequence.num_tokens())) {
    kv_.free(sequence.kv);  // what is free of the memory lies between cells of other formats
    return false;
  }
  sequence.times.started = now;
  mark_running(sequence);
  prefill_only_.join(sequence);
  stats_.num_hidden_rows_peak = std::max<std::int64_t>(stats_.num_hidden_rows_peak, prefill_only_.num_rows());
  return true;
}

// Returns the tokens that need not be computed. What a sibling holds is found through the prefix index where
// the sequence may use it, and taken from the sibling directly where not.
std::int32_t Scheduler::take_cached_prefix(Sequence& sequence) {
  if (sequence.awaits_prompt_logits()) return 0;
  if (sequence.kv.cursor != kv::kNoPrefixNode) return kv_.match_prefix(sequence.kv, sequence.token_ids);
  const Sequence* holder = find_prompt_holder(sequence, running_);
  if (holder == nullptr) return 0;
  // Its policy was given up, the holder's was not: it would read what that made coarse.
  if (holder->kv_policy.is_lossy() && !sequence.kv_policy.is_lossy()) return 0;
  return kv_.share_prefix(holder->kv, sequence.kv,
                          std::min(sequence.num_prompt_tokens, sequence.num_tokens() - 1));
}

// Guesses come last: they take the tokens that the step has left and blocks that are empty. For them nothing
// that is cached goes and nobody is preempted. Those behind the last token of the answer could not count.
void Scheduler::schedule_drafts() {
  std::int32_t num_left = config_.max_num_batched_tokens;
  for (const Sequence* sequence : running_) num_left -= sequence->num_scheduled_tokens;
  for (Sequence* sequence : running_) {
    if (sequence->draft_token_ids.empty() || sequence->num_scheduled_tokens == 0) continue;
    if (!sequence->is_decoding() || sequence->awaits_prompt_logits()) continue;
    const std::int32_t num_countable = sequence->stop.max_tokens - sequence->num_generated_tokens() - 1;
    const std::int32_t num_asked = std::min({static_cast<std::int32_t>(sequence->draft_token_ids.size()),
                                             num_countable, num_left, max_chunk_tokens_ - 1});
    if (num_asked <= 0) continue;
    const std::int32_t num_fitting =
        kv_.allocate_empty(sequence->kv, sequence->num_tokens() + num_asked) - sequence->num_tokens();
    sequence->num_scheduled_draft_tokens = std::min(num_asked, num_fitting);
    num_left -= sequence->num_scheduled_draft_tokens;
  }
}

void Scheduler::build_output() {
  output_.num_tokens = 0;
  output_.conversions = &kv_.cells().conversions();
  for (Sequence* sequence : running_) {
    const std::int32_t num_tokens = sequence->num_scheduled_tokens;
    if (num_tokens == 0) continue;
    const bool catches_up = num_tokens == sequence->num_remaining_tokens();
    ScheduledSequence& scheduled = output_.sequences.emplace_back();
    scheduled.id = sequence->id;
    scheduled.history = sequence->token_ids;
    scheduled.draft_token_ids = std::span(sequence->draft_token_ids)
                                    .first(static_cast<std::size_t>(sequence->num_scheduled_draft_tokens));
    scheduled.num_prompt_tokens = sequence->num_prompt_tokens;
    scheduled.first_position = sequence->num_computed_tokens;
    scheduled.num_tokens = num_tokens + sequence->num_scheduled_draft_tokens;
    scheduled.samples = catches_up && sequence->stop.max_tokens > 0;
    scheduled.first_logits_row = scheduled.samples ? num_tokens - 1 : num_tokens;
    if (sequence->awaits_prompt_logits()) {
      scheduled.first_logits_row =
          std::clamp(sequence->num_prompt_logits - sequence->num_computed_tokens, 0, num_tokens);
    }
    scheduled.block_tables = sequence->kv.tables;
    scheduled.scores = sequence->kv.scores;
    output_.num_tokens += scheduled.num_tokens;
    stats_.num_scheduled_tokens += num_tokens;
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

std::span<const SequenceUpdate> Scheduler::update(ModelStepResult& result, TimePoint now) {
  CHECK(result.num_tokens.size() == output_.sequences.size());
  updates_.clear();
  now_ = now;
  learn_step_time(now);
  kv_.forget_conversions();
  std::span<SampledToken> rest = result.tokens;
  for (std::size_t i = 0; i < output_.sequences.size(); ++i) {
    const std::span<SampledToken> tokens = rest.first(static_cast<std::size_t>(result.num_tokens[i]));
    rest = rest.subspan(tokens.size());
    const auto found = sequences_.find(output_.sequences[i].id);
    if (found == sequences_.end()) continue;  // finished while its step was running
    if (found->second.is_prefill_only) {
      advance_prefill_only(found->second, now);
      continue;
    }
    CHECK(output_.sequences[i].samples == !tokens.empty());
    advance(found->second, tokens, now);
  }
  output_.sequences.clear();
  demote_cells();
  return updates_;
}

// Of steps in which everybody ran all layers.
void Scheduler::learn_step_time(TimePoint now) {
  if (output_.num_whole != output_.sequences.size()) return;
  step_times_.observe(work_of(output_.sequences),
                      std::chrono::duration<double, std::milli>(now - step_began_).count());
}

// When nobody allocates or frees any more: what becomes coarser is written anew at the start of the next
// step.
void Scheduler::demote_cells() {
  kv_.begin_demotions();
  for (Sequence* sequence : running_) {
    kv_.demote(sequence->kv, sequence->num_computed_tokens, sequence->num_prompt_tokens);
    if (!sequence->kv.wishes.empty()) wishing_.push_back(&sequence->kv);
  }
  if (!wishing_.empty()) kv_.demote_shared(wishing_);
  wishing_.clear();
  kv_.end_demotions();
}

void Scheduler::advance_prefill_only(Sequence& sequence, TimePoint now) {
  if (!prefill_only_.advance(sequence)) return;
  sequence.times.prompt_computed = now;
  tenants_.charge(*sequence.account, sequence.num_prompt_tokens, 0, now_);
  updates_.push_back({.id = sequence.id, .finish_reason = FinishReason::kLength, .times = sequence.times});
  remove(sequence);
}

// `tokens`: what the step sampled, all but the last of which were guessed. A token that ends the sequence is
// its last one, whatever was guessed behind it. Rejected guesses leave nothing: the next step writes over
// their KV.
void Scheduler::advance(Sequence& sequence, std::span<SampledToken> tokens, TimePoint now) {
  const bool had_drafts = sequence.num_scheduled_draft_tokens > 0;
  const std::int32_t num_committed = std::exchange(sequence.num_scheduled_tokens, 0);
  const std::int32_t num_before = sequence.num_tokens();
  std::optional<FinishReason> finish_reason = append_sampled(sequence, tokens);
  const std::int32_t num_new = sequence.num_tokens() - num_before;
  tokens = tokens.first(static_cast<std::size_t>(num_new));
  tenants_.charge(*sequence.account, num_new > 0 ? num_committed - 1 : num_committed, num_new, now_);
  sequence.num_computed_tokens += num_committed + std::max(0, num_new - 1);
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
                      .times = sequence.times,
                      .num_preemptions = sequence.num_preemptions});
  if (finish_reason) remove(sequence);
}

// Up to the token that ends the sequence, and why it does.
std::optional<FinishReason> Scheduler::append_sampled(Sequence& sequence,
                                                      std::span<const SampledToken> tokens) {
  CHECK(std::ssize(tokens) <= 1 + std::exchange(sequence.num_scheduled_draft_tokens, 0));
  sequence.draft_token_ids.clear();
  std::optional<FinishReason> finish_reason;
  for (const SampledToken& sampled : tokens) {
    sequence.token_ids.push_back(sampled.token);
    finish_reason = check_stop(sequence.stop, sampled.token, sequence.num_generated_tokens());
    if (finish_reason) break;
  }
  return finish_reason;
}

void Scheduler::remove(Sequence& sequence) {
  if (sequence.num_generated_tokens() > 0) {
    sequence.account->lengths.observe(sequence.num_generated_tokens());
    answer_lengths_.observe(sequence.num_generated_tokens());
  }
  tenants_.leave(*sequence.account, now_);
  if (sequence.status == SequenceStatus::kRunning) {
    --sequence.account->num_running;
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
