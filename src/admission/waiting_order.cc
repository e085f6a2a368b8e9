#include "admission/waiting_order.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <string_view>

#include "admission/ttft_target.h"

namespace kvasir::admission {

std::span<const OrderedSequence> WaitingOrder::order(std::span<const SequenceFacts> sequences,
                                                     const StepRates& rates, const FairShare& fair_share,
                                                     TimePoint now) {
  ordered_.clear();
  const bool is_by_value = config_.policy == WaitingPolicy::kSloValue;
  WaitingConfig config = config_;
  config.tenant_quantum_tokens = fair_share.quantum_tokens(config_.tenant_quantum_tokens);
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    const SequenceFacts& facts = sequences[i];
    const bool is_long = is_by_value && yields(facts, rates, ttft_target_ms_);
    OrderedSequence next = rank(facts, config, waiting_facts(facts, rates, fair_share, now), is_long, now);
    if (facts.is_running && !is_by_value) next.key = {.arrival = std::ssize(ordered_)};  // their order stays
    next.index = i;
    ordered_.push_back(next);
  }
  serialize_long_prompts(sequences);
  std::ranges::sort(ordered_, [is_by_value](const OrderedSequence& a, const OrderedSequence& b) {
    if (!is_by_value && a.is_running != b.is_running) return a.is_running;
    return a.key < b.key;
  });
  place_urgent(sequences);
  return ordered_;
}

WaitingFacts WaitingOrder::waiting_facts(const SequenceFacts& facts, const StepRates& rates,
                                         const FairShare& fair_share, TimePoint now) const {
  const std::int32_t num_tokens = facts.num_tokens;
  const double to_compute = std::max(1, num_tokens - facts.expected_cached_tokens);
  const double to_generate = facts.expected_generated_tokens - facts.num_generated_tokens;
  const double whole_ms = rates.ms(whole_work_of(facts));
  const double prefill_ms = facts.is_running ? rates.ms(remaining_work_of(facts)) : whole_ms;
  const double decode_ms = to_generate * rates.ms_per_generated_token;
  return {.arrival = static_cast<std::int64_t>(facts.place.arrival),
          .priority = facts.priority,
          .has_started = facts.started.has_value(),
          .pending_ms = Milliseconds(now - facts.place.since).count(),
          .target_ms = reachable_target_ms(target_ms_of(ttft_target_ms_, facts.priority), whole_ms),
          .prefill_ms = prefill_ms,
          .hit_ratio = 1.0 - to_compute / num_tokens,
          .held_token_ms = std::max(1.0, num_tokens * (prefill_ms + decode_ms) + to_generate / 2 * decode_ms),
          .served_tokens = fair_share.served_tokens(*facts.account),
          .adapter_lead = adapter_lead(facts, fair_share)};
}

double WaitingOrder::adapter_lead(const SequenceFacts& facts, const FairShare& fair_share) const {
  if (facts.adapter_account == nullptr) return 0.0;
  const FairShare& adapters = *facts.account->adapters;
  return adapters.lead_tokens(*facts.adapter_account) /
         adapters.quantum_tokens(config_.tenant_quantum_tokens * fair_share.turn_scale());
}

OrderedSequence WaitingOrder::rank(const SequenceFacts& facts, const WaitingConfig& config,
                                   const WaitingFacts& waiting, bool is_long, TimePoint now) const {
  OrderedSequence next{.is_running = facts.is_running,
                       .is_long = is_long,
                       .key = key_of(config, waiting),
                       .place = facts.place};
  if (config.policy != WaitingPolicy::kSloValue) return next;
  if (facts.is_running) {
    next.key.is_new = facts.num_generated_tokens > 0 ? 0 : 1;  // all chunks of one that was preempted
    // A head start of one quantum: of its tenant, or where another adapter of that has had less, of its adapter.
    if (!facts.has_yielded && !is_long) {
      --(next.key.adapter_turn > 0 ? next.key.adapter_turn : next.key.tenant_turn);
      next.key.is_late = 0;
      next.key.negative_value = -std::numeric_limits<double>::infinity();
    }
  }
  WaitingFacts by_age = waiting;
  // A sequence that lends its place does not become younger. A long one is not urgent because it takes long.
  by_age.pending_ms = is_long ? 0.0 : Milliseconds(now - facts.arrived).count();
  next.urgent_class = std::min<std::int64_t>(0, class_of(config, by_age));
  return next;
}

// In turns all long prompts of a tenant would come late. While one is under way the others rank like those
// that have missed their target.
void WaitingOrder::serialize_long_prompts(std::span<const SequenceFacts> sequences) {
  std::vector<const SequenceFacts*> under_way;  // the first of each tenant
  for (const OrderedSequence& next : ordered_) {
    if (!next.is_long || !next.is_running) continue;
    const SequenceFacts& facts = sequences[next.index];
    const auto same = std::ranges::find(under_way, facts.account, &SequenceFacts::account);
    if (same == under_way.end()) {
      under_way.push_back(&facts);
    } else if (facts.started < (*same)->started) {
      *same = &facts;
    }
  }
  for (OrderedSequence& next : ordered_) {
    if (!next.is_long) continue;
    const SequenceFacts& facts = sequences[next.index];
    const auto first = std::ranges::find(under_way, facts.account, &SequenceFacts::account);
    if (first == under_way.end() || *first == &facts) continue;
    next.key.is_late = 1;
    next.key.negative_value = 0.0;
  }
}

// A preempted sequence keeps its place: it goes on first for the sake of its reader.
void WaitingOrder::place_urgent(std::span<const SequenceFacts> sequences) {
  if (std::ranges::none_of(ordered_, [](const OrderedSequence& o) { return o.urgent_class < 0; })) return;
  const auto may_change = [&](const OrderedSequence& o) {
    return o.is_running || !sequences[o.index].started;
  };
  const auto tenant_of = [&](const OrderedSequence& o) {
    return std::string_view(sequences[o.index].account->name);
  };
  urgent_.clear();
  std::ranges::copy_if(ordered_, std::back_inserter(urgent_), may_change);
  std::ranges::stable_sort(urgent_, [&](const OrderedSequence& a, const OrderedSequence& b) {
    if (sequences[a.index].account != sequences[b.index].account) return tenant_of(a) < tenant_of(b);
    return a.urgent_class < b.urgent_class;
  });
  std::vector<OrderedSequence*> places;
  for (OrderedSequence& place : ordered_) {
    if (may_change(place)) places.push_back(&place);
  }
  std::ranges::stable_sort(places, {}, [&](const OrderedSequence* o) { return tenant_of(*o); });
  for (std::size_t i = 0; i < places.size(); ++i) {
    const QueuePlace place = places[i]->place;
    *places[i] = urgent_[i];
    places[i]->place = place;
  }
}

}  // namespace kvasir::admission
