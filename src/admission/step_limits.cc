#include "admission/step_limits.h"

#include <algorithm>

namespace kvasir::admission {
namespace {

constexpr double kHalfStep = 0.5;
constexpr double kUnderservedStep = 1.2;
constexpr double kStepsOfTarget = 8.0;
constexpr std::int32_t kSmallChunkTokens = 64;
// A stream that is left out waits for this step and the next, in times of max_step_ms.
constexpr double kLongestWait = 2.0;

}  // namespace

double step_limit_beside_streams_ms(double max_step_ms, const StepWork& decoding, const StepTimeModel& times,
                                    bool may_be_underserved) {
  if (!may_be_underserved) return max_step_ms;
  return std::clamp(2 * times.predict_ms(decoding), kHalfStep * max_step_ms, max_step_ms);
}

double step_limit_of_underserved_ms(double max_step_ms) { return kUnderservedStep * max_step_ms; }

double step_limit_beside_long_prompt_ms(double ttft_target_ms, const StepTimeModel& times) {
  StepWork small;
  small.add_chunk(0, kSmallChunkTokens);
  return std::max(ttft_target_ms / kStepsOfTarget, times.predict_ms(small));
}

std::optional<double> step_limit_without_streams_ms(const UnderservedPrompt& prompt, std::int32_t max_tokens,
                                                    std::int32_t max_chunk_tokens, double max_step_ms,
                                                    const StepTimeModel& times) {
  const StepWork& kept = prompt.underserved_streams;
  if (kept.num_decoding == prompt.streams.num_decoding || prompt.num_tokens > max_chunk_tokens ||
      prompt.num_tokens + kept.num_decoding > max_tokens) {
    return std::nullopt;
  }
  StepWork all = prompt.streams;
  all.add_chunk(prompt.first_position, prompt.num_tokens);
  const double wait_ms = times.predict_ms(all);
  const double longest_ms = kLongestWait * max_step_ms;
  if (wait_ms <= step_limit_of_underserved_ms(max_step_ms) || wait_ms > longest_ms) return std::nullopt;
  return longest_ms - (times.predict_ms(prompt.streams) - times.predict_ms(kept));
}

}  // namespace kvasir::admission
