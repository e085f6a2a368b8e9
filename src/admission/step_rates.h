// How fast prompts and answers advance now, as the step time model expects it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "admission/prompt_work.h"
#include "admission/step_time_model.h"

namespace kvasir::admission {

struct StepRates {
  double ms_per_prompt_token = 0.0;     // of one that waits for its chunk beside what decodes
  double ms_per_prompt_key = 0.0;       // likewise, for each key that it reads
  double ms_per_generated_token = 0.0;  // of each stream: a step

  double ms(const PromptWork& work) const {
    return ms_per_prompt_token * static_cast<double>(work.num_tokens) +
           ms_per_prompt_key * static_cast<double>(work.num_keys);
  }
};

// With `decoding` and, where prompts are to be computed, a chunk of at most `max_chunk_tokens` beside it that
// makes the step last `max_step_ms` (0: as long as it takes). All 0 until steps were observed.
inline StepRates step_rates(const StepTimeModel& times, const StepWork& decoding, bool has_prompts,
                            std::int32_t max_chunk_tokens, double max_step_ms) {
  const bool is_bounded = max_step_ms > 0.0 && decoding.num_decoding > 0;
  const std::int32_t chunk = is_bounded ? times.chunk_within(max_step_ms, decoding, 0, max_chunk_tokens)
                                        : max_chunk_tokens;
  StepWork with_chunk = decoding;
  with_chunk.add_chunk(0, std::max(chunk, 1));
  const double step_ms = times.predict_ms(with_chunk);
  const double ms_per_prompt_token = step_ms / std::max(chunk, 1);
  return {.ms_per_prompt_token = ms_per_prompt_token,
          .ms_per_prompt_key = ms_per_prompt_token * times.key_to_token_ratio(),
          .ms_per_generated_token = has_prompts ? step_ms : times.predict_ms(decoding)};
}

}  // namespace kvasir::admission
