// The scheduler's limits and what it counts.
#pragma once

#include <cstdint>
#include <optional>

#include "admission/waiting_key.h"
#include "kvasir/result.h"
#include "sched/prefill_only_batch.h"
#include "sched/sequence.h"

namespace kvasir::sched {

struct SchedulerConfig {
  std::int32_t max_num_seqs = 16;             // running at once
  std::int32_t max_num_batched_tokens = 512;  // in one step, over all sequences
  std::int32_t max_chunk_tokens = 0;          // of one sequence in one step; 0: the whole step
  // A prompt runs in one step, or not at all: its tokens see those behind them. Requires prompts of at most
  // max_num_batched_tokens that generate nothing.
  bool runs_whole_prompts = false;
  // How long a step may take that computes prompts beside streams that decode; 0: as long as it takes.
  double max_step_ms = 0.0;
  admission::WaitingConfig waiting;
  double ttft_target_ms = 0.0;  // of class 0, see admission/ttft_target.h; 0: none
  PrefillOnlyConfig prefill_only;

  // Error (kUsage) naming the field and both numbers.
  Status validate() const;
  std::int32_t effective_chunk_tokens() const;
  bool is_by_value() const { return waiting.policy == WaitingPolicy::kSloValue; }
};

// Error naming the field and both numbers: kUsage; kUnmet for a prompt that runs whole and is longer than a step.
Status validate(const SequenceRequest& request, const SchedulerConfig& config);

struct SchedulerStats {
  std::int32_t num_running = 0;
  std::int64_t num_running_tokens = 0;  // prompts and answers so far
  std::int32_t num_waiting = 0;
  std::optional<TimePoint> oldest_arrival;  // of waiting sequences
  std::int64_t num_steps = 0;               // schedule() calls that ran something
  std::int64_t num_scheduled_tokens = 0;    // committed ones
  std::int64_t num_preemptions = 0;
  std::int64_t num_kept_exact = 0;  // sequences whose KV policy was given up for want of room
  std::int64_t num_skips = 0;  // steps without the streams of tenants that have had more than their share
  std::int64_t num_expired = 0;
  std::int64_t num_hidden_rows_peak = 0;   // the most that a prefill-only batch has kept at once
  std::int64_t prefix_queries_tokens = 0;  // tokens of starting sequences that asked the prefix cache
  std::int64_t prefix_hits_tokens = 0;     // of these, tokens that were found
};

}  // namespace kvasir::sched
