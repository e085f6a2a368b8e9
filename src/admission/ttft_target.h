// How soon a first token is due.
#pragma once

#include <cstdint>

#include "admission/sequence_facts.h"

namespace kvasir::admission {

// A first token may take this many times the prompt's own prefill time, whatever the target.
inline constexpr double kMostSlowdown = 1.25;

// The time to the first token that a class is promised, from that of class 0: thirty times as long for those
// behind it. 0: none.
double target_ms_of(double ttft_target_ms, std::int32_t priority);

// The target, but never less than 1.25 times the prompt's own prefill time.
double reachable_target_ms(double target_ms, double prefill_ms);

// True for a prompt so long that, by value, shorter prompts with this target need not wait for the rest of it.
bool yields(const StepRates& rates, const PromptWork& prompt, double target_ms);

// The same for a sequence. The target is that of class 0, whatever its own: it is for those that it lets
// pass. Prefill-only sequences never yield; they run apart.
bool yields(const SequenceFacts& facts, const StepRates& rates, double ttft_target_ms);

}  // namespace kvasir::admission
