#include "runtime/batch_builder.h"

namespace kvasir::runtime {

const backend::BatchInput& BatchBuilder::build(const sched::SchedulerOutput& output,
                                               bool want_attention_mass) {
  token_ids_.clear();
  slices_.clear();
  for (const sched::ScheduledSequence& sequence : output.sequences) {
    slices_.push_back({.first_row = static_cast<std::int32_t>(token_ids_.size()),
                       .num_rows = sequence.num_tokens,
                       .first_position = sequence.first_position,
                       .num_wanted_rows = sequence.num_logits_rows()});
    const auto ids = sequence.token_ids();
    token_ids_.insert(token_ids_.end(), ids.begin(), ids.end());
  }
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    groups_[group].blocks.clear();
    for (const sched::ScheduledSequence& sequence : output.sequences) {
      groups_[group].blocks.push_back(sequence.block_tables[group].blocks());
    }
  }
  batch_ = {.token_ids = token_ids_,
            .sequences = slices_,
            .kv_groups = groups_,
            .want_attention_mass = want_attention_mass};
  return batch_;
}

}  // namespace kvasir::runtime
