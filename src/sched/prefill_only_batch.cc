#include "sched/prefill_only_batch.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace kvasir::sched {
namespace {

// A row's logits cost about what all layers cost it, so a pass that gives logits has fewer rows: not many
// more than keep it as short as the others, but enough to share the decoding of weights (128 of the usual
// 512).
constexpr std::int32_t kLogitsPart = 4, kMinLogitsRows = 16;

}  // namespace

PrefillOnlyBatch::PrefillOnlyBatch(const PrefillOnlyConfig& config, std::int32_t max_chunk_tokens)
    : config_(config),
      max_chunk_tokens_(max_chunk_tokens),
      max_logits_rows_(std::min(max_chunk_tokens, std::max(kMinLogitsRows, max_chunk_tokens / kLogitsPart))) {
}

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

// Only here: the sequence that kept the layer from being complete may have left in between.
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
  const std::int32_t num_pass_rows = take_rows();
  pass_.end_layer = pass_.first_layer + layers_of_pass(num_pass_rows);
  const bool gives_logits = pass_.end_layer == config_.num_layers && wants_logits();
  const std::int32_t cost = gives_logits ? config_.num_layers : pass_.end_layer - pass_.first_layer;
  num_owed_rows_ -= std::min(num_owed_rows_, std::int64_t{num_pass_rows} * cost);
  output.layer_pass = pass_;
  for (const Sequence* sequence : sequences_) {
    if (sequence->num_scheduled_tokens > 0) output.sequences.push_back(part_of(*sequence));
  }
}

bool PrefillOnlyBatch::wants_logits() const {
  return std::ranges::any_of(sequences_,
                             [](const Sequence* sequence) { return sequence->want_prompt_logits; });
}

// The next rows of the layer, behind each other.
std::int32_t PrefillOnlyBatch::take_rows() {
  const bool gives_logits = pass_.first_layer + 1 == config_.num_layers && wants_logits();
  const std::int32_t max_rows = gives_logits ? max_logits_rows_ : max_chunk_tokens_;
  std::int32_t num_pass_rows = 0;
  for (Sequence* sequence : sequences_) {
    const std::int32_t num_tokens = std::min(sequence->num_remaining_tokens(), max_rows - num_pass_rows);
    if (num_tokens == 0) continue;
    const std::int32_t row = sequence->first_hidden_row + sequence->num_computed_tokens;
    if (num_pass_rows == 0) pass_.first_hidden_row = row;
    if (row != pass_.first_hidden_row + num_pass_rows) break;  // the one between them has left
    sequence->num_scheduled_tokens = num_tokens;
    num_pass_rows += num_tokens;
  }
  return num_pass_rows;
}

// Few rows that stay in one pass take several layers: a step costs about the same.
std::int32_t PrefillOnlyBatch::layers_of_pass(std::int32_t num_pass_rows) const {
  const std::int32_t num_left = config_.num_layers - pass_.first_layer;
  if (num_pass_rows < num_rows()) return 1;
  const std::int32_t num_layers = std::clamp(max_chunk_tokens_ / num_pass_rows, 1, num_left);
  const bool must_part = num_pass_rows > max_logits_rows_ && wants_logits();
  return num_layers > 1 && num_layers == num_left && must_part ? num_layers - 1 : num_layers;
}

ScheduledSequence PrefillOnlyBatch::part_of(const Sequence& sequence) const {
  const bool wants_logits = sequence.want_prompt_logits && pass_.end_layer == config_.num_layers;
  return {.id = sequence.id,
          .history = sequence.token_ids,
          .num_prompt_tokens = sequence.num_prompt_tokens,
          .first_position = sequence.num_computed_tokens,
          .num_tokens = sequence.num_scheduled_tokens,
          .first_logits_row = wants_logits ? std::clamp(sequence.num_prompt_logits - sequence.num_computed_tokens, 0,
                                                        sequence.num_scheduled_tokens)
                                           : sequence.num_scheduled_tokens,
          .samples = false,
          .block_tables = sequence.kv.prefill_only_tables,
          .scores = {}};
}

bool PrefillOnlyBatch::advance(Sequence& sequence) const {
  sequence.num_computed_tokens += std::exchange(sequence.num_scheduled_tokens, 0);
  return sequence.num_remaining_tokens() == 0 && pass_.end_layer == config_.num_layers;
}

}  // namespace kvasir::sched
