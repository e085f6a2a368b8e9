// Scheduler: what it expects of those that wait, for their order and for those that are yet to come.
#include <algorithm>
#include <chrono>
#include <limits>
#include <tuple>

#include "sched/scheduler.h"

namespace kvasir::sched {
namespace {

constexpr std::int32_t kTypicalPromptTokens = 512;

using Milliseconds = std::chrono::duration<double, std::milli>;

// What of a running sequence's prompt is left, without the last token.
PromptWork remaining_work_of(const Sequence& sequence) {
  PromptWork work;
  work.add(sequence.num_computed_tokens, sequence.num_remaining_tokens() - 1);
  return work;
}

// All that is or was to be computed of a sequence's prompt: of one that waits what is not expected to be
// cached.
PromptWork whole_work_of(const Sequence& sequence) {
  const bool is_running = sequence.status == SequenceStatus::kRunning;
  const std::int32_t first = is_running ? sequence.first_position : sequence.expected_first_position();
  PromptWork work;
  work.add(first, sequence.num_tokens() - first);
  return work;
}

}  // namespace

StepWork Scheduler::decoding_work() const {
  StepWork work;
  for (const Sequence* sequence : running_) {
    if (sequence->is_decoding()) work.add_decoding(sequence->num_computed_tokens);
  }
  return work;
}

// With every seat taken, in the middle of answers so long.
double Scheduler::full_step_ms(std::int32_t answer_tokens) const {
  const std::int64_t num_seqs = config_.max_num_seqs;
  return step_times_.predict_ms(
      {.num_decoding = config_.max_num_seqs, .num_attended_tokens = num_seqs * (answer_tokens / 2 + 1)});
}

Pace Scheduler::pace() const {
  const StepWork decoding = decoding_work();
  return pace_of(step_times_, decoding, !waiting_.empty() || computes_prompts(), max_chunk_tokens_,
                 step_limit_ms(decoding));
}

WaitingFacts Scheduler::facts_of(const Sequence& sequence, const Pace& pace, TimePoint now) const {
  const std::int32_t num_tokens = sequence.num_tokens();
  const double to_compute = std::max(1, num_tokens - sequence.expected_cached_tokens);
  const double to_generate = sequence.expected_generated_tokens() - sequence.num_generated_tokens();
  const bool is_running = sequence.status == SequenceStatus::kRunning;
  const double prefill_ms = pace.ms(is_running ? remaining_work_of(sequence) : whole_work_of(sequence));
  const double decode_ms = to_generate * pace.ms_per_generated_token;
  return {.arrival = static_cast<std::int64_t>(sequence.place.arrival),
          .priority = sequence.priority,
          .has_started = sequence.times.started.has_value(),
          .pending_ms = Milliseconds(now - sequence.place.since).count(),
          .target_ms = reachable_target_ms(target_ms(sequence), pace.ms(whole_work_of(sequence))),
          .prefill_ms = prefill_ms,
          .hit_ratio = 1.0 - to_compute / num_tokens,
          .held_token_ms = std::max(1.0, num_tokens * (prefill_ms + decode_ms) + to_generate / 2 * decode_ms),
          .served_tokens = tenants_.served_tokens(*sequence.account)};
}

// With the turn of as many tenants as there are.
WaitingConfig Scheduler::waiting_config() const {
  WaitingConfig waiting = config_.waiting;
  waiting.tenant_quantum_tokens *= TenantLedger::turn_scale(tenants_.num_unfinished_tenants());
  return waiting;
}

bool Scheduler::computes_prompts() const {
  return std::ranges::any_of(running_, [](const Sequence* s) { return !s->is_decoding(); });
}

double Scheduler::target_ms(const Sequence& sequence) const {
  return target_ms_of(config_.ttft_target_ms, sequence.priority);
}

// By the target of class 0, whatever its own: it is for those that it lets pass. Prefill-only ones are apart.
bool Scheduler::is_long(const Sequence& sequence, const Pace& pace) const {
  return !sequence.is_prefill_only && gives_way(pace, whole_work_of(sequence), config_.ttft_target_ms);
}

// As long as it takes, but beside a long prompt no longer than an eighth of the target, or than a small
// chunk: who comes meanwhile waits for the end of the step.
double Scheduler::alone_limit_ms() const {
  constexpr double kStepsOfTarget = 8.0;
  constexpr std::int32_t kSmallChunk = 64;
  if (config_.waiting.policy != WaitingPolicy::kSloValue) return StepLimits::kUnbounded;
  const Pace pace = this->pace();
  const auto holds_up = [&](const Sequence* s) { return !s->is_decoding() && is_long(*s, pace); };
  if (!std::ranges::any_of(running_, holds_up) && !std::ranges::any_of(waiting_, holds_up)) {
    return StepLimits::kUnbounded;
  }
  StepWork small;
  small.add_chunk(0, kSmallChunk);
  return std::max(config_.ttft_target_ms / kStepsOfTarget, step_times_.predict_ms(small));
}

// Prompts that have begun and sequences that wait, into ordered_. Who has begun comes first; by value only
// within the turn of its class and tenant, and unless it gives way.
void Scheduler::order_prompts(TimePoint now) {
  ordered_.clear();
  const Pace pace = this->pace();
  const WaitingConfig waiting = waiting_config();
  const bool is_by_value = waiting.policy == WaitingPolicy::kSloValue;
  const auto add = [&](Sequence& sequence, bool is_running) {
    const WaitingFacts facts = facts_of(sequence, pace, now);
    WaitingKey key = key_of(waiting, facts);
    const bool is_long = is_by_value && this->is_long(sequence, pace);
    if (is_running && is_by_value) {
      key.is_new = sequence.num_generated_tokens() > 0 ? 0 : 1;  // of one that was preempted all chunks
      // That it has begun counts for one turn of its tenant.
      if (!sequence.has_lent_turn && !is_long) {
        --key.tenant_turn;
        key.is_late = 0;
        key.negative_value = -std::numeric_limits<double>::infinity();
      }
    } else if (is_running) {
      key = {.arrival = std::ssize(ordered_)};  // their order stays
    }
    WaitingFacts by_age = facts;
    // Who lends its place does not become younger. Who takes long is not urgent because of that.
    by_age.pending_ms = is_long ? 0.0 : Milliseconds(now - sequence.times.arrived).count();
    const std::int64_t urgent_class = std::min<std::int64_t>(0, class_of(waiting, by_age));
    ordered_.push_back({.is_running = is_running,
                        .is_long = is_long,
                        .key = key,
                        .urgent_class = is_by_value ? urgent_class : 0,
                        .sequence = &sequence,
                        .place = sequence.place});
  };
  for (Sequence* sequence : running_) {
    if (!sequence->is_decoding()) add(*sequence, true);
  }
  for (Sequence* sequence : waiting_) add(*sequence, false);
  line_up_long();
  std::ranges::sort(ordered_, [is_by_value](const Ordered& a, const Ordered& b) {
    if (!is_by_value && a.is_running != b.is_running) return a.is_running;
    return a.key < b.key;
  });
  order_urgent();
}

// A tenant's long prompts are computed one after the other; in turns all of them would come late. While one
// is under way the others are as those that have missed their target.
void Scheduler::line_up_long() {
  std::vector<const Sequence*> under_way;  // the first of each tenant
  for (const Ordered& next : ordered_) {
    if (!next.is_long || !next.is_running) continue;
    const auto same = std::ranges::find(under_way, next.sequence->account, &Sequence::account);
    if (same == under_way.end()) {
      under_way.push_back(next.sequence);
    } else if (next.sequence->times.started < (*same)->times.started) {
      *same = next.sequence;
    }
  }
  for (Ordered& next : ordered_) {
    if (!next.is_long) continue;
    const auto first = std::ranges::find(under_way, next.sequence->account, &Sequence::account);
    if (first == under_way.end() || *first == next.sequence) continue;
    next.key.is_late = 1;
    next.key.negative_value = 0.0;
  }
}

// A tenant's own change places: those that it calls urgent take the ones of those that come first. Who was
// preempted keeps its own: that it goes on first is for the sake of who reads it.
void Scheduler::order_urgent() {
  if (std::ranges::none_of(ordered_, [](const Ordered& o) { return o.urgent_class < 0; })) return;
  const auto may_change = [](const Ordered& o) { return o.is_running || !o.sequence->times.started; };
  const auto tenant_of = [](const Ordered& o) { return std::string_view(o.sequence->account->name); };
  urgent_.clear();
  std::ranges::copy_if(ordered_, std::back_inserter(urgent_), may_change);
  std::ranges::stable_sort(urgent_, [&](const Ordered& a, const Ordered& b) {
    if (a.sequence->account != b.sequence->account) return tenant_of(a) < tenant_of(b);
    return a.urgent_class < b.urgent_class;
  });
  std::vector<Ordered*> places;
  for (Ordered& place : ordered_) {
    if (may_change(place)) places.push_back(&place);
  }
  std::ranges::stable_sort(places, {}, [&](const Ordered* o) { return tenant_of(*o); });
  for (std::size_t i = 0; i < places.size(); ++i) {
    const Sequence::Place place = places[i]->place;
    *places[i] = urgent_[i];
    places[i]->place = place;
  }
}

// Whoever has it now comes when the one that started would have, so that others wait for one of the two only.
void Scheduler::use_up_place(const Ordered& started) {
  if (started.place.arrival == started.sequence->place.arrival) return;
  for (const Ordered& other : ordered_) {
    if (other.sequence->place.arrival != started.place.arrival) continue;
    other.sequence->has_lent_turn = other.is_running;
    return std::swap(started.sequence->place, other.sequence->place);
  }
}

// Three of sixteen seats are for tenants that have less than their share of them, where there is more than
// one: they need not wait for an end.
std::int32_t Scheduler::num_reserved_seats(std::int32_t num_tenants) const {
  if (config_.waiting.policy != WaitingPolicy::kSloValue || num_tenants < 2) return 0;
  return std::max(1, config_.max_num_seqs * 3 / 16);
}

std::int32_t Scheduler::seat_share(std::int32_t num_tenants) const {
  return std::max(1, config_.max_num_seqs / std::max(1, num_tenants));
}

bool Scheduler::leaves_seat_to_others(const Sequence& sequence, std::int32_t num_tenants) const {
  const std::int32_t num_reserved = num_reserved_seats(num_tenants);
  if (num_reserved == 0 || sequence.account->num_running < seat_share(num_tenants)) return false;
  return num_running() > 0 && num_running() + num_reserved >= config_.max_num_seqs;
}

// Tenants do not preempt each other's by calling their own urgent.
std::int32_t Scheduler::running_class(std::int32_t priority, TimePoint now) const {
  const bool is_shared = config_.waiting.policy == WaitingPolicy::kSloValue && tenants_.num_present(now) > 1;
  return is_shared ? std::max(0, priority) : priority;
}

void Scheduler::describe_load(LoadSnapshot& load) const {
  load.clear();
  const Pace pace = this->pace();
  load.num_free_seats = config_.max_num_seqs - num_running();
  load.pace = pace;
  load.usual_answer_tokens = answer_lengths_.predict(0, std::numeric_limits<std::int32_t>::max());
  load.full_step_ms = full_step_ms(load.usual_answer_tokens);
  StepWork typical;
  typical.add_chunk(0, kTypicalPromptTokens);
  load.typical_prompt_ms = step_times_.predict_ms(typical);
  described_.clear();
  for (const auto& [id, sequence] : sequences_) {
    described_.push_back(&sequence);
    const std::int32_t to_generate = sequence.expected_generated_tokens() - sequence.num_generated_tokens();
    const double decode_ms = to_generate * pace.ms_per_generated_token;
    load.hold_ms += decode_ms;
    if (sequence.status == SequenceStatus::kWaiting) continue;
    load.busy_seats_ms.push_back(pace.ms(remaining_work_of(sequence)) + pace.ms_per_prompt_token + decode_ms);
  }
  load.num_holding = static_cast<std::int32_t>(sequences_.size());
  describe_groups(load);
  describe_tenants(load);
}

// Sorted, because each request may have a class of its own and a search for each would take long.
void Scheduler::describe_groups(LoadSnapshot& load) const {
  std::ranges::sort(described_, {}, [](const Sequence* s) {
    return std::tuple(std::string_view(s->account->name), s->priority, s->id);
  });
  const Sequence* last = nullptr;
  for (const Sequence* sequence : described_) {
    const TenantLedger::Account& account = *sequence->account;
    if (last == nullptr || last->account != &account || last->priority != sequence->priority) {
      load.groups.push_back({.tenant = account.name,
                             .priority = sequence->priority,
                             .served_tokens = tenants_.served_tokens(account)});
    }
    last = sequence;
    WaitingGroup& group = load.groups.back();
    if (sequence->status == SequenceStatus::kRunning) {
      const PromptWork work = remaining_work_of(*sequence);
      group.running_prompts += work;
      if (sequence->is_prefill_only) {
        group.running_prefill_only += work;
      } else if (is_long(*sequence, load.pace)) {
        group.running_long.push_back(work);
      }
    } else {
      const PromptWork work = whole_work_of(*sequence);
      ++group.num_sequences;
      group.prompts += work;
      if (sequence->is_prefill_only) {
        group.prefill_only += work;
      } else if (is_long(*sequence, load.pace)) {
        group.long_ones.push_back(work);
      }
    }
  }
}

// Behind their groups.
void Scheduler::describe_tenants(LoadSnapshot& load) const {
  load.entry_tokens = tenants_.entry_tokens();
  load.num_tenants = tenants_.num_unfinished_tenants();
  double recent_tokens = 0.0;
  for (const auto& [name, account] : tenants_.accounts()) {
    recent_tokens += TenantLedger::recent_tokens(account, now_);
    if (account.num_unfinished == 0 && tenants_.served_tokens(account) > load.entry_tokens) {
      load.absent.push_back({.tenant = name, .served_tokens = tenants_.served_tokens(account)});
    }
  }
  const std::int32_t num_present = tenants_.num_present(now_);
  load.num_reserved_seats = num_reserved_seats(num_present);
  load.seat_share = seat_share(num_present);
  for (WaitingGroup& group : load.groups) {
    const TenantLedger::Account& account = tenants_.accounts().find(group.tenant)->second;
    group.num_running = account.num_running;
    if (recent_tokens > 0.0) {
      group.recent_share = TenantLedger::recent_tokens(account, now_) / recent_tokens;
    }
  }
}

}  // namespace kvasir::sched
