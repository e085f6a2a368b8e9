// The order in which prompts are computed and waiting sequences start.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "admission/sequence_facts.h"
#include "admission/waiting_key.h"

namespace kvasir::admission {

struct OrderedSequence {
  std::size_t index = 0;  // into the facts that were given
  bool is_running = false;
  bool is_long = false;  // shorter prompts need not wait for it
  WaitingKey key;
  std::int64_t urgent_class = 0;  // 0, or below it by value
  QueuePlace place;               // its own, unless it is urgent or has lent its place
};

// Prompts that have begun come first. By value they do so only within their class and their tenant's quantum,
// and unless they yield; a tenant's long prompts are computed one after the other; a tenant's urgent requests
// take the places of its own that would come first. Within a tenant's turn its adapters take turns alike.
//
// Deterministic: the same facts give the same order. Thread safety: none; it keeps its memory between calls.
class WaitingOrder {
 public:
  // `ttft_target_ms`: of class 0; 0: none.
  WaitingOrder(const WaitingConfig& config, double ttft_target_ms)
      : config_(config), ttft_target_ms_(ttft_target_ms) {}

  // `sequences`: prompts that have begun, in their running order, then all that wait. Valid until the next
  // call.
  std::span<const OrderedSequence> order(std::span<const SequenceFacts> sequences, const StepRates& rates,
                                         const FairShare& fair_share, TimePoint now);

 private:
  WaitingFacts waiting_facts(const SequenceFacts& facts, const StepRates& rates, const FairShare& fair_share,
                             TimePoint now) const;
  double adapter_lead(const SequenceFacts& facts, const FairShare& fair_share) const;
  OrderedSequence rank(const SequenceFacts& facts, const WaitingConfig& config, const WaitingFacts& waiting,
                       bool is_long, TimePoint now) const;
  void serialize_long_prompts(std::span<const SequenceFacts> sequences);
  void place_urgent(std::span<const SequenceFacts> sequences);

  const WaitingConfig config_;
  const double ttft_target_ms_;
  std::vector<OrderedSequence> ordered_;
  std::vector<OrderedSequence> urgent_;  // of place_urgent(), kept for its memory
};

}  // namespace kvasir::admission
