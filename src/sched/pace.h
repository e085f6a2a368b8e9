// How fast things go now, as the step time model expects it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sched/step_time_model.h"

namespace kvasir::sched {

struct Pace {
  double ms_per_prompt_token = 0.0;     // of one that waits for its chunk beside what decodes
  double ms_per_generated_token = 0.0;  // of each stream: a step
};

// With `decoding` and, where prompts are to be computed, a chunk of at most `max_chunk_tokens` beside it that
// makes the step last `max_step_ms` (0: as long as it takes). All 0 until steps were observed.
inline Pace pace_of(const StepTimeModel& times, const StepWork& decoding, bool has_prompts,
                    std::int32_t max_chunk_tokens, double max_step_ms) {
  const bool is_bounded = max_step_ms > 0.0 && decoding.num_decoding > 0;
  const std::int32_t chunk =
      is_bounded ? times.chunk_within(max_step_ms, decoding, 0, max_chunk_tokens) : max_chunk_tokens;
  StepWork with_chunk = decoding;
  with_chunk.add_chunk(0, std::max(chunk, 1));
  const double step_ms = times.predict_ms(with_chunk);
  return {.ms_per_prompt_token = step_ms / std::max(chunk, 1),
          .ms_per_generated_token = has_prompts ? step_ms : times.predict_ms(decoding)};
}

}  // namespace kvasir::sched
