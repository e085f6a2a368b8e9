// Tells KV policies what a step's queries attended to, and what the blocks that became full are like.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "sched/scheduler_output.h"

namespace kvasir::runtime {

// Not thread-safe. The backend must outlive it.
class AttentionObserver {
 public:
  explicit AttentionObserver(backend::Backend& backend) : backend_(backend) {}

  // After the model's forward pass over the sequences, once it is known which guesses count: writes the
  // scores of those that have some. `num_accepted`: by sequence, of its guesses; the others leave nothing.
  void observe(std::span<const sched::ScheduledSequence> sequences,
               std::span<const std::int32_t> num_accepted);

 private:
  void add_attention(std::int32_t slice, std::int32_t group, const sched::ScheduledSequence& sequence,
                     std::int32_t num_accepted, kv::SequenceScores& scores) const;
  void measure_full_blocks(const sched::ScheduledSequence& sequence, std::int32_t num_accepted,
                           std::int32_t group, kv::SequenceScores& scores);

  backend::Backend& backend_;
  std::vector<float> results_;         // [cells, blocks]
  std::vector<float> longest_values_;  // likewise
};

}  // namespace kvasir::runtime
