// How many tokens one step may still run.
#pragma once

#include <algorithm>
#include <cstdint>

#include "admission/step_limits.h"
#include "admission/step_time_model.h"

namespace kvasir::sched {

using admission::StepLimits;
using admission::StepTimeModel;
using admission::StepWork;

// Sequences with one token left to compute (decoding) have theirs set aside before anyone computes a prompt
// chunk, so a long prompt never delays running streams by more than its chunk. That is cut to what the time
// allows, such that the step's rows fill whole tiles of 16 (a tile of fewer takes as long), and the first is
// at least 16 tokens: prompts advance whatever the streams take. A second one has room only where 16 fit, so
// that prompts are computed one after the other. Forced runs of streams come first, and whole.
class StepBudget {
 public:
  // `decoding`: the work of those that decode. Requires: decoding.num_decoding <= limits.max_tokens. `times`
  // is borrowed.
  StepBudget(const StepLimits& limits, const StepWork& decoding, const StepTimeModel& times)
      : limits_(limits),
        times_(&times),
        chunk_tokens_(limits.max_tokens - decoding.num_decoding),
        work_(decoding) {}

  // How many of its remaining tokens a sequence that was not counted as decoding may run; 0 when the step is
  // full.
  std::int32_t take_chunk(std::int32_t num_remaining, std::int32_t first_position,
                          bool is_underserved = false) {
    if (!has_room()) return 0;
    if (limits_.runs_whole_prompts) return take_whole(num_remaining);
    const std::int32_t asked = std::min({num_remaining, limits_.max_chunk_tokens, chunk_tokens_});
    const double limit_ms = is_underserved ? limits_.underserved_ms : limits_.max_ms;
    std::int32_t granted = times_->chunk_within(limit_ms, work_, first_position, asked);
    if (granted < asked) {
      const std::int32_t num_rows = work_.num_decoding + work_.num_chunk_tokens + granted;
      granted = std::min(asked, std::max(kTileRows, granted - num_rows % kTileRows));
    }
    chunk_tokens_ -= granted;
    work_.add_chunk(first_position, granted);
    return granted;
  }

  // The same for the forced run of a stream, before any prompt: the time of steps does not count, for each of its tokens
  // would take a step of its own.
  std::int32_t take_forced_run(std::int32_t num_remaining, std::int32_t first_position) {
    const std::int32_t granted = std::min({num_remaining, limits_.max_chunk_tokens, chunk_tokens_});
    if (granted <= 0) return 0;
    chunk_tokens_ -= granted;
    work_.add_chunk(first_position, granted);
    return granted;
  }

  bool has_room() const {
    const bool has_time = work_.num_chunk_tokens == 0 ||
                          times_->chunk_within(limits_.max_ms, work_, 0, kTileRows) == kTileRows;
    return chunk_tokens_ > 0 && has_time;
  }

 private:
  static constexpr std::int32_t kTileRows = 16;

  // All tokens of a prompt; 0 when they do not fit beside others.
  std::int32_t take_whole(std::int32_t num_tokens) {
    if (num_tokens > chunk_tokens_ && work_.num_chunk_tokens > 0) return 0;
    chunk_tokens_ -= num_tokens;
    work_.add_chunk(0, num_tokens);
    return num_tokens;
  }

  StepLimits limits_;
  const StepTimeModel* times_;
  std::int32_t chunk_tokens_;  // left
  StepWork work_;
};

}  // namespace kvasir::sched
