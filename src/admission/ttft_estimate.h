// When a request that comes now would have its first token, so that it can be refused at once instead of too
// late.
#pragma once

#include <cstdint>
#include <string_view>

#include "admission/load_snapshot.h"
#include "admission/waiting_key.h"

namespace kvasir::admission {

struct TtftEstimate {
  double wait_ms = 0.0;     // until its prompt would be computed
  double prefill_ms = 0.0;  // and then
  double typical_ms = 0.0;  // the time of a prompt of 512 tokens on an idle machine
};

// For a request of this tenant and class, with this much of its prompt to compute. A prefill-only one waits for
// other prefill-only ones too; any other has half of the steps beside them.
TtftEstimate estimate_ttft(const LoadSnapshot& load, const WaitingConfig& config, std::string_view tenant,
                           std::int32_t priority, const PromptWork& prompt, bool is_prefill_only = false);

// Whether a tenant with something unfinished has been served more than this one, by more than a quantum.
bool is_underserved(const LoadSnapshot& load, const WaitingConfig& config, std::string_view tenant);

// By how much the first token is later than it may be; at most 0 when it is in time. It may take
// `slack_targets` targets (ttft_slack.h), or two typical prompts for each where that is more, so that a slow
// machine is not measured by a fast one's target; and a quarter longer than the prompt takes by itself where
// that is more, so that an idle server refuses none. With more slack, long prompts take the time of others
// that could have kept the target (bench/schedule with Azure's conversations: a third of the goodput at four
// times the capacity).
double excess_ms(const TtftEstimate& estimate, double target_ms, double slack_targets);

}  // namespace kvasir::admission
