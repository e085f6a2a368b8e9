#include "sim/simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace kvasir::sim {
namespace {

// Each step advances the sequence that runs first, or a prefill-only batch by tokens of a layer, so the sum
// of all lengths is enough without preemption. A sequence can be thrown back by those before it.
std::int64_t max_steps(const Workload& workload) {
  std::int64_t steps = 200;  // the last arrival and the last deadline are before
  for (const SimRequest& item : workload.requests) {
    const auto length = static_cast<std::int64_t>(item.request.prompt_token_ids.size()) +
                        item.request.stop.max_tokens;
    steps += item.request.num_choices * length * (1 + workload.scheduler.prefill_only.num_layers);
  }
  return steps;
}

// The step time of a machine that takes a microsecond a token: less than from one step to the next.
std::chrono::microseconds duration_of(const sched::SchedulerOutput& output) {
  return std::chrono::microseconds(std::min(output.num_tokens, 900));
}

}  // namespace

void Coverage::add(const Coverage& other) {
  num_steps += other.num_steps;
  num_sequences += other.num_sequences;
  num_finished += other.num_finished;
  num_cancelled += other.num_cancelled;
  num_expired += other.num_expired;
  num_refused += other.num_refused;
  num_preemptions += other.num_preemptions;
  num_hit_tokens += other.num_hit_tokens;
  num_evictions += other.num_evictions;
  num_borrowed_tokens += other.num_borrowed_tokens;
  num_block_copies += other.num_block_copies;
  num_skips += other.num_skips;
  num_deduplicated += other.num_deduplicated;
  num_conversions += other.num_conversions;
  num_rounds += other.num_rounds;
  num_moves += other.num_moves;
  num_journaled += other.num_journaled;
  num_budgets += other.num_budgets;
  num_layer_passes += other.num_layer_passes;
  num_holds += other.num_holds;
  num_freezes += other.num_freezes;
  num_draft_tokens += other.num_draft_tokens;
  num_accepted_tokens += other.num_accepted_tokens;
  num_forced_tokens += other.num_forced_tokens;
}

namespace {

kv::KvCacheConfig with(kv::KvCacheConfig config, kv::PolicyJournal& journal) {
  config.journal = &journal;
  return config;
}

}  // namespace

Simulation::Simulation(std::uint64_t seed, bool verbose)
    : workload_(make_workload(seed)),
      verbose_(verbose),
      random_(mix(seed, 2)),
      kv_(with(workload_.kv, journal_)),
      scheduler_(workload_.scheduler, kv_),
      engine_(kv_, workload_.vocab_size, workload_.scheduler.prefill_only.max_tokens),
      draft_source_(mix(seed, 10), workload_.vocab_size),
      of_holds_(mix(seed, 11)),
      holds_(of_holds_.percent(40)),
      of_runs_(mix(seed, 12)),
      percent_forced_(of_runs_.percent(40) ? 30 : 0),
      of_freezes_(mix(seed, 13)),
      percent_frozen_(of_freezes_.percent(30) ? 2 : 0),
      first_id_(workload_.requests.size(), SequenceId{-1}),
      max_steps_((holds_ ? 3 : 1) * max_steps(workload_)) {
  if (verbose_) fmt::print("{}", describe(workload_));
}

void Simulation::fail(std::string message) {
  if (failure_.empty()) failure_ = fmt::format("step {}: {}", step_, message);
}

std::string Simulation::run() {
  while (failure_.empty() && (num_submitted_ < workload_.requests.size() || scheduler_.has_unfinished())) {
    step();
    if (++step_ > max_steps_) fail(fmt::format("starvation: not done after {} steps", max_steps_));
  }
  if (failure_.empty()) check_all_ended();
  coverage_.num_steps = step_;
  coverage_.num_preemptions = scheduler_.stats().num_preemptions;
  coverage_.num_skips = scheduler_.stats().num_skips;
  coverage_.num_hit_tokens = scheduler_.stats().prefix_hits_tokens;
  coverage_.num_evictions = kv_.stats().num_evictions;
  coverage_.num_deduplicated = kv_.stats().num_deduplicated;
  coverage_.num_borrowed_tokens = kv_.stats().num_borrowed_tokens;
  coverage_.num_conversions = num_conversions_;
  coverage_.num_rounds = num_rounds_;
  coverage_.num_moves = num_moves_;
  coverage_.num_layer_passes = num_layer_passes_;
  return failure_;
}

void Simulation::step() {
  submit_arrivals();
  disturb(Moment::kBeforeSchedule);
  hold_and_release();
  freeze_some();
  const bool has_work = scheduler_.has_unfinished() && held_until_.empty();
  const sched::SchedulerOutput& output = scheduler_.schedule(time_of_step(step_));
  for (const SequenceId id : output.expired) {
    if (choices_.at(id).started) fail("a sequence that had begun expired");
    end(id, End::kExpired);
  }
  if (has_work && output.empty() && scheduler_.has_unfinished())
    fail("work is left but nothing was scheduled");
  check_order_of_starts();
  check_limits(output);
  check_journal();
  check_blocks();
  sched::ModelStepResult result = run_model(output);
  if (!failure_.empty()) return;
  disturb(Moment::kBeforeUpdate);
  const auto updates = scheduler_.update(result, time_of_step(step_) + duration_of(output));
  check_journal();
  check_drafts_left_nothing();
  take_updates(updates);
  check_blocks();
  propose_drafts();
  disturb(Moment::kAfterUpdate);
  check_blocks();
}

void Simulation::submit_arrivals() {
  for (; num_submitted_ < workload_.requests.size(); ++num_submitted_) {
    const SimRequest& item = workload_.requests[num_submitted_];
    if (item.arrival_step > step_) return;
    const auto id = scheduler_.add(item.request, time_of_step(step_));
    if (!id) {
      log("request {} refused: {}", static_cast<std::uint64_t>(item.request.request_id), id.error().message);
      const auto needed = static_cast<std::int32_t>(item.request.prompt_token_ids.size()) +
                          std::max(0, item.request.stop.max_tokens - 1);
      const auto fits = [&](const kv::LayerGroup& group) {
        return needed <= group.num_blocks * kv::kTokensPerBlock;
      };
      if (std::ranges::all_of(workload_.kv.groups, fits)) fail("a request that fits was refused");
      ++coverage_.num_refused;
      continue;
    }
    first_id_[num_submitted_] = *id;
    for (std::int32_t choice = 0; choice < item.request.num_choices; ++choice) {
      choices_.emplace(SequenceId{number(*id) + choice},
                       Choice{.request = &item, .index = choice, .solo = SoloRun(workload_, item, choice)});
      ++coverage_.num_sequences;
    }
    log("request {} becomes sequence {}", static_cast<std::uint64_t>(item.request.request_id), number(*id));
  }
}

void Simulation::disturb(Moment moment) {
  for (std::size_t i = 0; i < num_submitted_; ++i) {
    if (first_id_[i] == SequenceId{-1}) continue;
    const SimRequest& item = workload_.requests[i];
    for (const Disturbance& cancel : item.cancels) {
      if (cancel.step != step_ || cancel.moment != moment) continue;
      const SequenceId id{number(first_id_[i]) + cancel.choice};
      const bool was_alive = choices_.at(id).end == End::kNone;
      if (scheduler_.finish(id) != was_alive)
        fail(fmt::format("finish({}) disagrees with what ended", number(id)));
      if (was_alive) end(id, End::kCancelled);
    }
  }
}

void Simulation::end(SequenceId id, End how) {
  Choice& choice = choices_.at(id);
  if (choice.end != End::kNone) fail(fmt::format("sequence {} ended twice", number(id)));
  choice.end = how;
  coverage_.num_finished += how == End::kItself ? 1 : 0;
  coverage_.num_cancelled += how == End::kCancelled ? 1 : 0;
  coverage_.num_expired += how == End::kExpired ? 1 : 0;
  log("sequence {} ends ({}) after {} tokens", number(id),
      how == End::kItself      ? "itself"
      : how == End::kCancelled ? "cancelled"
                               : "expired",
      choice.generated.size());
}

// In random order, so that nothing rests on the order within a batch.
sched::ModelStepResult Simulation::run_model(const sched::SchedulerOutput& output) {
  std::vector<std::vector<TokenId>> next_tokens(output.sequences.size());
  std::vector<std::int32_t> num_forced(output.sequences.size());
  for (const kv::CellConversion& conversion : output.conversions->all()) {
    ++(conversion.from.format() == conversion.to.format() ? num_moves_ : num_conversions_);
  }
  coverage_.num_block_copies += std::ssize(kv_.cells().block_copies());
  std::int64_t num_rounds = 0;
  output.conversions->for_each_round([&](auto) { ++num_rounds; });
  num_rounds_ += std::max<std::int64_t>(num_rounds - 1, 0);
  if (const std::string fault = engine_.convert(*output.conversions); !fault.empty()) fail(fault);
  std::vector<std::size_t> order(output.sequences.size());
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random_.bits() % i]);
  const auto prefill_only = std::span(output.sequences).subspan(output.num_whole);
  if (const std::string fault = engine_.run_layers(prefill_only, output.layer_pass); !fault.empty())
    fail(fault);
  for (const std::size_t i : order) {
    const sched::ScheduledSequence& scheduled = output.sequences[i];
    Choice& choice = choices_.at(scheduled.id);
    log("sequence {} runs [{}, {}) of {}{}", number(scheduled.id), scheduled.first_position,
        scheduled.first_position + scheduled.num_tokens, scheduled.history.size(),
        scheduled.samples ? ", samples" : "");
    const bool is_prefill_only = i >= output.num_whole;
    if (is_prefill_only && output.layer_pass.end_layer < workload_.scheduler.prefill_only.num_layers) {
      if (scheduled.num_logits_rows() > 0) fail("logits before the last layer");
      continue;
    }
    check_prompt_logits(scheduled, choice);
    if (is_prefill_only) continue;
    const auto outcome = engine_.run(scheduled, choice.solo,
                                     NamespaceHash(workload_, choice.request->request),
                                     choice.request->sample_seed + static_cast<std::uint64_t>(choice.index));
    if (!outcome.fault.empty()) fail(fmt::format("sequence {}: {}", number(scheduled.id), outcome.fault));
    coverage_.num_draft_tokens += scheduled.num_draft_tokens();
    coverage_.num_accepted_tokens += std::max<std::int64_t>(0, std::ssize(outcome.next_tokens) - 1);
    next_tokens[i] = outcome.next_tokens;
    num_forced[i] = force_tokens(choice, next_tokens[i]);
  }
  sched::ModelStepResult result;
  for (std::size_t i = 0; i < next_tokens.size(); ++i) {
    for (const TokenId token : next_tokens[i]) result.tokens.push_back({.token = token});
    result.num_tokens.push_back(static_cast<std::int32_t>(next_tokens[i].size()) - num_forced[i]);
  }
  if (percent_forced_ > 0) result.num_forced = num_forced;
  return result;
}

// A guide leaves no choice about what the solo run says next: adds some of it, perhaps beyond the answer's end.
std::int32_t Simulation::force_tokens(const Choice& choice, std::vector<TokenId>& next_tokens) {
  if (next_tokens.empty() || !of_runs_.percent(percent_forced_)) return 0;
  const auto answer = choice.solo.tokens().subspan(choice.request->request.prompt_token_ids.size());
  const std::size_t num_known = choice.generated.size() + next_tokens.size();
  const auto most = static_cast<std::int32_t>(of_runs_.bits() % (sched::kMaxForcedTokens + 1));
  for (std::int32_t i = 0; i < most; ++i) {
    const std::size_t place = num_known + static_cast<std::size_t>(i);
    next_tokens.push_back(place < answer.size() ? answer[place] : TokenId{0});
  }
  coverage_.num_forced_tokens += most;
  return most;
}

// Guides that compile and masks that are late: a held sequence runs nothing, and all are released in the end.
void Simulation::hold_and_release() {
  std::erase_if(held_until_, [&](const auto& held) {
    if (held.second > step_) return false;
    scheduler_.release(held.first);
    return true;
  });
  if (!holds_) return;
  for (const auto& [id, sequence] : scheduler_.sequences()) {
    if (sequence.is_held || !of_holds_.percent(3)) continue;
    scheduler_.hold(id);
    held_until_[id] = step_ + of_holds_.between(1, 8);
    ++coverage_.num_holds;
  }
}

// Policies that are held back, and do nothing any more for sequences that are there.
void Simulation::freeze_some() {
  if (percent_frozen_ == 0) return;
  for (const auto& [id, sequence] : scheduler_.sequences()) {
    if (!sequence.kv_policy.is_lossy() || !of_freezes_.percent(percent_frozen_)) continue;
    log("the KV policy of sequence {} is frozen", number(id));
    scheduler_.freeze_kv(id);
    if (sequence.status != sched::SequenceStatus::kRunning && sequence.kv_policy.is_lossy()) fail("a sequence that waits keeps a policy");
    ++coverage_.num_freezes;
  }
}

// Proposes guesses for sequences that generate, as an engine would between two steps.
void Simulation::propose_drafts() {
  for (const auto& [id, sequence] : scheduler_.sequences()) {
    if (sequence.status != sched::SequenceStatus::kRunning || !sequence.is_decoding()) continue;
    const auto coming = choices_.at(id).solo.tokens().subspan(sequence.token_ids.size());
    scheduler_.set_draft(id, draft_source_.propose(coming));
  }
}

void Simulation::take_updates(std::span<const sched::SequenceUpdate> updates) {
  for (const sched::SequenceUpdate& update : updates) {
    Choice& choice = choices_.at(update.id);
    if (choice.end != End::kNone) fail(fmt::format("sequence {} goes on after its end", number(update.id)));
    for (const sched::SampledToken& sampled : update.tokens) {
      choice.generated.push_back(sampled.token);
      const auto expected = choice.solo.tokens().subspan(choice.request->request.prompt_token_ids.size());
      if (choice.generated.size() > expected.size() ||
          choice.generated.back() != expected[choice.generated.size() - 1]) {
        fail(fmt::format("sequence {}: token {} is not the solo run's", number(update.id),
                         choice.generated.size()));
      }
      const bool is_last = &sampled == &update.tokens.back();
      const auto reason = is_last ? update.finish_reason : std::nullopt;
      if (choice.generated.size() == expected.size() && reason != choice.solo.finish_reason()) {
        fail(fmt::format("sequence {} does not end where the solo run does", number(update.id)));
      }
    }
    if (update.finish_reason) {
      end(update.id, End::kItself);
      if (choice.request->request.want_prompt_logits && choice.index == 0 &&
          choice.num_prompt_logits != std::ssize(choice.request->request.prompt_token_ids)) {
        fail(fmt::format("sequence {} ended without all its prompt logits", number(update.id)));
      }
    } else if (choice.request->stop_string_after_tokens > 0 &&
               choice.request->stop_string_after_tokens <= std::ssize(choice.generated)) {
      if (!scheduler_.finish(update.id)) fail("a running sequence could not be finished");
      end(update.id, End::kCancelled);
    }
  }
}

}  // namespace kvasir::sim
