// The sequence that loses its blocks when a pool runs dry.
#pragma once

#include <cstdint>
#include <span>

#include "sched/sequence.h"

namespace kvasir::sched {

// Chooses among those that may be preempted, in RunsBefore order: one of the last class, the cheapest to
// compute again that holds as many tokens as are missing; where none does, the one that holds the most. Not
// the one that was preempted last, `last_victim`, unless it is alone. Requires: not empty.
inline Sequence& choose_victim(std::span<Sequence* const> candidates, std::int32_t num_missing_tokens,
                               SequenceId last_victim) {
  const std::int32_t last_class = candidates.back()->running_class;
  Sequence* victim = nullptr;
  const auto is_better = [&](const Sequence& a, const Sequence& b) {
    const bool a_frees_enough = a.num_computed_tokens >= num_missing_tokens;
    const bool b_frees_enough = b.num_computed_tokens >= num_missing_tokens;
    if (a_frees_enough != b_frees_enough) return a_frees_enough;
    return a_frees_enough ? a.num_computed_tokens <= b.num_computed_tokens
                          : a.num_computed_tokens >= b.num_computed_tokens;
  };
  for (Sequence* candidate : candidates) {
    if (candidate->running_class != last_class) continue;
    if (candidate->id == last_victim && candidates.size() > 1) continue;
    if (victim == nullptr || is_better(*candidate, *victim)) victim = candidate;
  }
  return victim != nullptr ? *victim : *candidates.back();
}

}  // namespace kvasir::sched
