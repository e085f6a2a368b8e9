// A sequence as admission sees it: plain data, for pure functions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "admission/fair_share.h"
#include "admission/prompt_work.h"
#include "admission/step_rates.h"
#include "admission/time_point.h"
#include "kvasir/ids.h"

namespace kvasir::admission {

// A place in the queue; a sequence that starts in the place of another exchanges it.
struct QueuePlace {
  SequenceId arrival{};
  TimePoint since{};
};

struct SequenceFacts {
  SequenceId id{};
  const FairShare::Account* account = nullptr;  // its tenant's; never null
  const FairShare::Account* adapter_account = nullptr;  // its adapter's, of FairShare::adapters_of(); null: there is none
  std::int32_t priority = 0;                    // lower runs first
  bool is_running = false;
  bool is_prefill_only = false;
  bool has_yielded = false;  // a running prompt has given its head start to an urgent request
  QueuePlace place;
  TimePoint arrived{};
  std::optional<TimePoint> started;
  std::int32_t num_tokens = 0;
  std::int32_t num_generated_tokens = 0;
  std::int32_t num_computed_tokens = 0;
  std::int32_t first_position = 0;             // from which it has computed since it last started
  std::int32_t expected_cached_tokens = 0;     // of its prompt, before it starts
  std::int32_t expected_generated_tokens = 0;  // all together

  // The last token is always computed.
  std::int32_t expected_first_position() const { return std::min(expected_cached_tokens, num_tokens - 1); }
};

// The rest of a running sequence's prompt, without the last token.
inline PromptWork remaining_work_of(const SequenceFacts& facts) {
  PromptWork work;
  work.add(facts.num_computed_tokens, facts.num_tokens - facts.num_computed_tokens - 1);
  return work;
}

// All that is or was to be computed of a sequence's prompt, without what is or is expected to be cached.
inline PromptWork whole_work_of(const SequenceFacts& facts) {
  const std::int32_t first = facts.is_running ? facts.first_position : facts.expected_first_position();
  PromptWork work;
  work.add(first, facts.num_tokens - first);
  return work;
}

}  // namespace kvasir::admission
