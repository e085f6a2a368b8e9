// How fast things go now, as the step time model expects it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sched/step_time_model.h"

namespace kvasir::sched {

// Prompts that are to be computed. Their time depends on the tokens and on how many keys each of them reads.
struct PromptWork {
  std::int64_t num_tokens = 0;
  std::int64_t num_keys = 0;

  // So many tokens of one prompt, behind others.
  void add(std::int64_t first_position, std::int64_t count) {
    num_tokens += count;
    num_keys += count * first_position + count * (count + 1) / 2;
  }
  PromptWork& operator+=(const PromptWork& other) {
    num_tokens += other.num_tokens;
    num_keys += other.num_keys;
    return *this;
  }
  PromptWork without(const PromptWork& part) const {
    return {.num_tokens = num_tokens - part.num_tokens, .num_keys = num_keys - part.num_keys};
  }
  PromptWork part(double share) const {
    return {.num_tokens = static_cast<std::int64_t>(share * static_cast<double>(num_tokens)),
            .num_keys = static_cast<std::int64_t>(share * static_cast<double>(num_keys))};
  }
};

struct Pace {
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
inline Pace pace_of(const StepTimeModel& times, const StepWork& decoding, bool has_prompts,
                    std::int32_t max_chunk_tokens, double max_step_ms) {
  const bool is_bounded = max_step_ms > 0.0 && decoding.num_decoding > 0;
  const std::int32_t chunk =
      is_bounded ? times.chunk_within(max_step_ms, decoding, 0, max_chunk_tokens) : max_chunk_tokens;
  StepWork with_chunk = decoding;
  with_chunk.add_chunk(0, std::max(chunk, 1));
  const double step_ms = times.predict_ms(with_chunk);
  const double ms_per_prompt_token = step_ms / std::max(chunk, 1);
  return {.ms_per_prompt_token = ms_per_prompt_token,
          .ms_per_prompt_key = ms_per_prompt_token * times.key_to_token_ratio(),
          .ms_per_generated_token = has_prompts ? step_ms : times.predict_ms(decoding)};
}

}  // namespace kvasir::sched
