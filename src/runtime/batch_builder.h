// Turns a scheduler's decision into the ragged batch that a model runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backend/batch_input.h"
#include "runtime/kv_storage.h"
#include "sched/scheduler_output.h"

namespace kvasir::runtime {

// Keeps its vectors from step to step, so a steady batch shape builds without allocating. Not thread-safe.
class BatchBuilder {
 public:
  // `windows` per layer group, as in ModelConfig::layer_groups. `storage` must outlive the builder.
  BatchBuilder(const KvStorage& storage, std::vector<std::int32_t> windows);

  // Borrows from the builder: valid until the next call.
  const backend::BatchInput& build(const sched::SchedulerOutput& output, bool want_attention_mass);

 private:
  const KvStorage& storage_;
  const std::vector<std::int32_t> windows_;
  std::vector<TokenId> token_ids_;
  std::vector<backend::SequenceSlice> slices_;
  std::vector<backend::KvGroupView> groups_;
  std::vector<std::vector<std::byte*>> blocks_;  // [group * sequences + sequence]
  backend::BatchInput batch_;
};

}  // namespace kvasir::runtime
