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
  // `kv_groups`: per layer group, as in ModelConfig::layer_groups, without blocks.
  BatchBuilder(std::vector<backend::KvGroupView> kv_groups, bool runs_all_layers)
      : runs_all_layers_(runs_all_layers), groups_(std::move(kv_groups)) {}

  // Borrows from the builder and from what the sequences borrow from: valid until the next call.
  // `wants_attention_scores`: by sequence, of its last query where no policy observes it. `token_types`: by
  // sequence, of its whole prompt, or empty for type 0. `adapters`: by sequence.
  const backend::BatchInput& build(std::span<const sched::ScheduledSequence> sequences,
                                   std::span<const std::uint8_t> wants_attention_scores,
                                   std::span<const std::span<const std::uint8_t>> token_types,
                                   std::span<const backend::ScaledAdapter> adapters);

 private:
  const bool runs_all_layers_;
  void add_token_types(const sched::ScheduledSequence& sequence, std::span<const std::uint8_t> of_prompt);

  std::vector<TokenId> token_ids_;
  std::vector<std::uint8_t> token_types_;  // empty while all are 0
  std::vector<backend::BatchSequence> slices_;
  std::vector<backend::KvGroupView> groups_;
  backend::BatchInput batch_;
};

}  // namespace kvasir::runtime
