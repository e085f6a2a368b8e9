#include "admission/ttft_target.h"

#include <algorithm>

namespace kvasir::admission {
namespace {

constexpr double kTargetsOfLowerClasses = 30.0;

}  // namespace

double target_ms_of(double ttft_target_ms, std::int32_t priority) {
  return priority > 0 ? kTargetsOfLowerClasses * ttft_target_ms : ttft_target_ms;
}

double reachable_target_ms(double target_ms, double prefill_ms) {
  return target_ms > 0.0 ? std::max(target_ms, kMostSlowdown * prefill_ms) : 0.0;
}

bool yields(const StepRates& rates, const PromptWork& prompt, double target_ms) {
  return target_ms > 0.0 && rates.ms(prompt) > target_ms;
}

bool yields(const SequenceFacts& facts, const StepRates& rates, double ttft_target_ms) {
  return !facts.is_prefill_only && yields(rates, whole_work_of(facts), ttft_target_ms);
}

}  // namespace kvasir::admission
