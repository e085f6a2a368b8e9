// Turns a scheduler's decision into the ragged batch that a model runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "backend/batch_input.h"
#include "sched/scheduler_output.h"

namespace kvasir::runtime {

// Keeps its vectors from step to step, so a steady batch shape builds without allocating. Not thread-safe.
class BatchBuilder {
 public:
  // Per layer group, as in ModelConfig::layer_groups, without blocks.
  explicit BatchBuilder(std::vector<backend::KvGroupView> kv_groups) : groups_(std::move(kv_groups)) {}

  // Borrows from the builder and from `output`: valid until the next call.
  // `wants_attention_mass`: by scheduled sequence, of its last query where no policy observes it.
  const backend::BatchInput& build(const sched::SchedulerOutput& output,
                                   std::span<const std::uint8_t> wants_attention_mass);

 private:
  std::vector<TokenId> token_ids_;
  std::vector<backend::SequenceSlice> slices_;
  std::vector<backend::KvGroupView> groups_;
  backend::BatchInput batch_;
};

}  // namespace kvasir::runtime
