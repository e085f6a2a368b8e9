#include "runtime/batch_builder.h"

#include <algorithm>
#include <utility>

namespace kvasir::runtime {

BatchBuilder::BatchBuilder(const KvStorage& storage, std::vector<std::int32_t> windows)
    : storage_(storage), windows_(std::move(windows)) {
  groups_.resize(storage.num_groups());
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    groups_[group].layout = storage.layout(group);
    groups_[group].window = windows_[group];
  }
}

const backend::BatchInput& BatchBuilder::build(const sched::SchedulerOutput& output,
                                               bool want_attention_mass) {
  token_ids_.clear();
  slices_.clear();
  const std::size_t num_sequences = output.sequences.size();
  for (const sched::ScheduledSequence& sequence : output.sequences) {
    slices_.push_back({.first_row = static_cast<std::int32_t>(token_ids_.size()),
                       .num_rows = sequence.num_tokens,
                       .first_position = sequence.first_position,
                       .num_wanted_rows = sequence.num_logits_rows()});
    const auto ids = sequence.token_ids();
    token_ids_.insert(token_ids_.end(), ids.begin(), ids.end());
  }
  blocks_.resize(std::max(blocks_.size(), groups_.size() * num_sequences));
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    groups_[group].blocks.clear();
    for (std::size_t i = 0; i < num_sequences; ++i) {
      std::vector<std::byte*>& blocks = blocks_[group * num_sequences + i];
      blocks.clear();
      for (BlockId id : output.sequences[i].block_tables[group].blocks()) {
        blocks.push_back(id == kHole ? nullptr : storage_.block(group, id));
      }
      groups_[group].blocks.push_back(blocks);
    }
  }
  batch_ = {.token_ids = token_ids_,
            .sequences = slices_,
            .kv_groups = groups_,
            .want_attention_mass = want_attention_mass};
  return batch_;
}

}  // namespace kvasir::runtime
