// Tells KV policies what a step's queries attended to, and what the blocks that became full are like.
#pragma once

#include <span>
#include <vector>

#include "backend/backend.h"
#include "sched/scheduler_output.h"

namespace kvasir::runtime {

// Not thread-safe. The backend must outlive it.
class AttentionObserver {
 public:
  explicit AttentionObserver(backend::Backend& backend) : backend_(backend) {}

  // After the model's forward pass over the sequences: writes the scores of those that have some.
  void observe(std::span<const sched::ScheduledSequence> sequences);

 private:
  void measure_full_blocks(const sched::ScheduledSequence& sequence, std::int32_t group,
                           kv::SequenceScores& scores);

  backend::Backend& backend_;
  std::vector<float> results_;         // [cells, blocks]
  std::vector<float> longest_values_;  // likewise
};

}  // namespace kvasir::runtime
