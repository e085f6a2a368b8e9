// How many tokens a step may run and how long it may take.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "admission/step_time_model.h"

namespace kvasir::admission {

struct StepLimits {
  std::int32_t max_tokens = 0;
  std::int32_t max_chunk_tokens = 0;  // of one sequence
  bool runs_whole_prompts = false;    // or none of their tokens
  // How long a step may take, as StepTimeModel expects it.
  double max_ms = kUnbounded;
  double underserved_ms = kUnbounded;  // likewise, for the prompt of a tenant that is underserved

  static constexpr double kUnbounded = std::numeric_limits<double>::infinity();
};

// For prompts beside sequences that decode. If an underserved tenant is present, or was in the last minute,
// steps are halved so that its prompt starts sooner; but prompts get as much time as the streams.
double step_limit_beside_streams_ms(double max_step_ms, const StepWork& decoding, const StepTimeModel& times,
                                    bool may_be_underserved);

// For the prompt of an underserved tenant beside all streams: they give some of their time.
double step_limit_of_underserved_ms(double max_step_ms);

// For steps without decoding in which a long prompt runs: an eighth of the target, or a small chunk where that
// takes longer. A request that comes meanwhile waits for the end of the step.
double step_limit_beside_long_prompt_ms(double ttft_target_ms, const StepTimeModel& times);

// The prompt of an underserved tenant, and the streams that would run beside it.
struct UnderservedPrompt {
  std::int32_t first_position = 0;
  std::int32_t num_tokens = 0;  // to compute
  StepWork streams;             // all of them
  StepWork underserved_streams;
};

// Whether the step shall leave out all other streams: when the prompt does not fit beside them, but leaving
// them out would not keep them waiting too long. Returns the time the step may take then.
std::optional<double> step_limit_without_streams_ms(const UnderservedPrompt& prompt, std::int32_t max_tokens,
                                                    std::int32_t max_chunk_tokens, double max_step_ms,
                                                    const StepTimeModel& times);

}  // namespace kvasir::admission
