#include "runtime/batch_builder.h"

namespace kvasir::runtime {

namespace {

// The weights by the policy's memory, which all groups share whose layers see every earlier token.
kv::QueryWeights observed_queries(const sched::ScheduledSequence& sequence, bool wants_attention_scores) {
  for (const kv::SequenceScores& scores : sequence.scores) {
    if (scores.num_cells() > 0 && scores.memory().is_kept) return scores.memory().weights();
  }
  return {.num_queries = wants_attention_scores ? 1 : 0};
}

}  // namespace

const backend::BatchInput& BatchBuilder::build(std::span<const sched::ScheduledSequence> sequences,
                                               std::span<const std::uint8_t> wants_attention_scores,
                                               std::span<const std::span<const std::uint8_t>> token_types,
                                               std::span<const backend::ScaledAdapter> adapters) {
  token_ids_.clear();
  token_types_.clear();
  slices_.clear();
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    const sched::ScheduledSequence& sequence = sequences[i];
    slices_.push_back({.first_row = static_cast<std::int32_t>(token_ids_.size()),
                       .num_rows = sequence.num_tokens,
                       .first_position = sequence.first_position,
                       .num_wanted_rows = sequence.num_logits_rows(),
                       .observed = observed_queries(sequence, wants_attention_scores[i] != 0),
                       .num_draft_rows = sequence.num_draft_tokens(),
                       .adapter = adapters[i]});
    const auto committed = sequence.committed_token_ids();
    token_ids_.insert(token_ids_.end(), committed.begin(), committed.end());
    token_ids_.insert(token_ids_.end(), sequence.draft_token_ids.begin(), sequence.draft_token_ids.end());
    add_token_types(sequence, token_types[i]);
  }
  if (!token_types_.empty()) token_types_.resize(token_ids_.size());
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    groups_[group].blocks.clear();
    for (const sched::ScheduledSequence& sequence : sequences) {
      groups_[group].blocks.push_back(sequence.block_tables[group].blocks());
    }
  }
  batch_ = {.token_ids = token_ids_,
            .token_types = token_types_,
            .sequences = slices_,
            .kv_groups = groups_,
            .runs_all_layers = runs_all_layers_};
  return batch_;
}

// Of the rows that were added last.
void BatchBuilder::add_token_types(const sched::ScheduledSequence& sequence,
                                   std::span<const std::uint8_t> of_prompt) {
  if (of_prompt.empty()) return;
  token_types_.resize(token_ids_.size());
  const auto first_row = token_ids_.size() - static_cast<std::size_t>(sequence.num_tokens);
  const auto first = static_cast<std::size_t>(sequence.first_position);
  for (std::size_t i = 0; first_row + i < token_ids_.size() && first + i < of_prompt.size(); ++i) {
    token_types_[first_row + i] = of_prompt[first + i];
  }
}

}  // namespace kvasir::runtime
