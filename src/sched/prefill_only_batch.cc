#include "sched/prefill_only_batch.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace kvasir::sched {

bool PrefillOnlyBatch::may_join(const Sequence& sequence) const {
  if (has_begun_) return false;
  const std::int32_t limit = empty() ? config_.max_tokens : std::min(config_.max_tokens, max_chunk_tokens_);
  return std::int64_t{num_rows()} + sequence.num_tokens() <= limit;
}

void PrefillOnlyBatch::join(Sequence& sequence) {
  CHECK(may_join(sequence));
  sequence.first_hidden_row = num_rows();
  sequences_.push_back(&sequence);
}

void PrefillOnlyBatch::leave(Sequence& sequence) {
  std::erase(sequences_, &sequence);
  if (!empty()) return;
  has_begun_ = false;
  pass_ = {};
  num_owed_rows_ = 0;
}

std::int32_t PrefillOnlyBatch::num_rows() const {
  std::int32_t num_rows = 0;
  for (const Sequence* sequence : sequences_) num_rows += sequence->num_tokens();
  return num_rows;
}

// Only here: whoever kept the layer from being complete may have left in between.
void PrefillOnlyBatch::begin_layer_when_due() {
  const auto is_complete = [](const Sequence* sequence) { return sequence->num_remaining_tokens() == 0; };
  if (!std::ranges::all_of(sequences_, is_complete)) return;
  pass_.first_layer = pass_.end_layer;
  for (Sequence* sequence : sequences_) sequence->num_computed_tokens = 0;
}

void PrefillOnlyBatch::schedule(SchedulerOutput& output) {
  CHECK(!empty());
  has_begun_ = true;
  begin_layer_when_due();
  std::int32_t num_pass_rows = 0;
  for (Sequence* sequence : sequences_) {
    const std::int32_t num_tokens =
        std::min(sequence->num_remaining_tokens(), max_chunk_tokens_ - num_pass_rows);
    if (num_tokens == 0) continue;
    const std::int32_t row = sequence->first_hidden_row + sequence->num_computed_tokens;
    if (num_pass_rows == 0) pass_.first_hidden_row = row;
    if (row != pass_.first_hidden_row + num_pass_rows) break;  // who was between them has left
    sequence->num_scheduled_tokens = num_tokens;
    num_pass_rows += num_tokens;
  }
  // Few rows that stay in one pass take several layers: a step costs about the same.
  const std::int32_t num_layers =
      num_pass_rows == num_rows() ? std::max(1, max_chunk_tokens_ / num_pass_rows) : 1;
  pass_.end_layer = std::min(config_.num_layers, pass_.first_layer + num_layers);
  num_owed_rows_ -=
      std::min(num_owed_rows_, std::int64_t{num_pass_rows} * (pass_.end_layer - pass_.first_layer));
  output.layer_pass = pass_;
  for (const Sequence* sequence : sequences_) {
    if (sequence->num_scheduled_tokens > 0) output.sequences.push_back(part_of(*sequence));
  }
}

ScheduledSequence PrefillOnlyBatch::part_of(const Sequence& sequence) const {
  const bool wants_logits = sequence.want_prompt_logits && pass_.end_layer == config_.num_layers;
  return {.id = sequence.id,
          .history = sequence.token_ids,
          .num_prompt_tokens = sequence.num_prompt_tokens,
          .first_position = sequence.num_computed_tokens,
          .num_tokens = sequence.num_scheduled_tokens,
          .first_logits_row = wants_logits ? 0 : sequence.num_scheduled_tokens,
          .samples = false,
          .block_tables = sequence.kv.layer_tables,
          .scores = {}};
}

bool PrefillOnlyBatch::advance(Sequence& sequence) const {
  sequence.num_computed_tokens += std::exchange(sequence.num_scheduled_tokens, 0);
  return sequence.num_remaining_tokens() == 0 && pass_.end_layer == config_.num_layers;
}

}  // namespace kvasir::sched
