// Sequences that want nothing but their prompt, taken through the model layer by layer.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sched/scheduler_output.h"
#include "sched/sequence.h"

namespace kvasir::sched {

struct PrefillOnlyConfig {
  // Whose hidden states the runtime keeps at once; 0: no sequence is prefill-only.
  std::int32_t max_tokens = 0;
  std::int32_t num_layers = 1;  // of the model
};

// A prompt that nothing is generated from needs the keys and values of a layer only while that layer runs. So
// the batch runs one layer over all its prompts, in passes of a step's chunk, then the next in the same
// memory; between the layers it keeps the hidden states of every token (PrefillOnly, Du et al. 2025). The
// hidden states of its sequences lie behind each other, in the order in which they joined.
//
// A batch is one prompt, or several that fit one pass together: a longer prompt never holds up shorter ones
// that came with it. No prompt joins once it has begun.
//
// A step has one pass. It costs a `num_layers`-th of a step in which as many tokens run all layers (one that
// gives logits, which cost more, has fewer rows), so sequences that decode beside a batch hardly notice it.
// Prompts that run all layers beside it do not starve it either: what a step gives them, the batch gets in
// the passes of the steps after it, in which only sequences that decode run beside (is_owed_passes).
//
// Thread safety: none. Borrows its sequences, which must not move.
class PrefillOnlyBatch {
 public:
  // Requires: max_chunk_tokens >= 1.
  PrefillOnlyBatch(const PrefillOnlyConfig& config, std::int32_t max_chunk_tokens);

  bool empty() const { return sequences_.empty(); }
  std::int32_t size() const { return static_cast<std::int32_t>(sequences_.size()); }
  // The rows of hidden states, as long as no sequence has left.
  std::int32_t num_rows() const;

  bool may_join(const Sequence& sequence) const;
  // Requires: may_join(sequence).
  void join(Sequence& sequence);
  void leave(Sequence& sequence);

  // The next pass: appends what it runs to the output. Requires: not empty.
  void schedule(SchedulerOutput& output);
  // The tokens that schedule() gave this sequence have been computed; true when none are left.
  bool advance(Sequence& sequence) const;

  // So many tokens of prompts have been scheduled to run all layers beside the batch. Requires: not empty.
  void note_prompt_tokens(std::int32_t num_tokens) {
    num_owed_rows_ += std::int64_t{num_tokens} * config_.num_layers;
  }
  bool is_owed_passes() const { return num_owed_rows_ > 0; }

 private:
  void begin_layer_when_due();
  bool wants_logits() const;
  std::int32_t take_rows();
  std::int32_t layers_of_pass(std::int32_t num_pass_rows) const;
  ScheduledSequence part_of(const Sequence& sequence) const;

  const PrefillOnlyConfig config_;
  const std::int32_t max_chunk_tokens_;
  const std::int32_t max_logits_rows_;  // of a pass that gives logits
  std::vector<Sequence*> sequences_;
  bool has_begun_ = false;
  LayerPass pass_;                  // the last one scheduled, or as if layer 0 came next
  std::int64_t num_owed_rows_ = 0;  // times layers: what prompts that run all of them are ahead
};

}  // namespace kvasir::sched
