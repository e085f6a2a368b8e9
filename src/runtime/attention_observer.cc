#include "runtime/attention_observer.h"

namespace kvasir::runtime {

void AttentionObserver::observe(std::span<const sched::ScheduledSequence> sequences,
                                std::span<const std::int32_t> num_accepted) {
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    const sched::ScheduledSequence& sequence = sequences[i];
    for (std::size_t g = 0; g < sequence.scores.size(); ++g) {
      kv::SequenceScores& scores = sequence.scores[g];
      if (scores.num_cells() == 0) continue;  // a group with a window
      const auto group = static_cast<std::int32_t>(g);
      if (scores.memory().is_kept) {
        add_attention(static_cast<std::int32_t>(i), group, sequence, num_accepted[i], scores);
      }
      if (scores.memory().statistic != kv::CellStatistic::kNone) {
        measure_full_blocks(sequence, num_accepted[i], group, scores);
      }
    }
  }
}

// Row by row where there are guesses, as steps of one token would have.
void AttentionObserver::add_attention(std::int32_t slice, std::int32_t group,
                                      const sched::ScheduledSequence& sequence, std::int32_t num_accepted,
                                      kv::SequenceScores& scores) const {
  const auto g = static_cast<std::size_t>(group);
  if (sequence.draft_token_ids.empty()) return scores.add(backend_.step_scores(slice, 0)[g]);
  for (std::int32_t row = 0; row < sequence.num_committed_tokens() + num_accepted; ++row) {
    scores.add(backend_.step_scores(slice, row)[g]);
  }
}

void AttentionObserver::measure_full_blocks(const sched::ScheduledSequence& sequence,
                                            std::int32_t num_accepted, std::int32_t group,
                                            kv::SequenceScores& scores) {
  // After a prefix hit also those that another sequence has computed.
  const std::int32_t first = scores.num_measured_blocks();
  const std::int32_t num_computed = sequence.first_position + sequence.num_committed_tokens() + num_accepted;
  const std::int32_t end = num_computed / kv::kTokensPerBlock;
  if (first == end) return;
  const auto num_blocks = static_cast<std::size_t>(end - first);
  results_.resize(static_cast<std::size_t>(scores.num_cells()) * num_blocks);
  longest_values_.resize(results_.size());
  const auto& table = sequence.block_tables[static_cast<std::size_t>(group)];
  backend_.measure_blocks({.group = group,
                           .blocks = table.blocks().subspan(static_cast<std::size_t>(first), num_blocks),
                           .first_block = first,
                           .key_sums = scores.key_sums(),
                           .results = results_,
                           .longest_values = longest_values_});
  for (std::int32_t cell = 0; cell < scores.num_cells(); ++cell) {
    for (std::size_t i = 0; i < num_blocks; ++i) {
      const std::size_t at = static_cast<std::size_t>(cell) * num_blocks + i;
      scores.set_statistic(cell, first + static_cast<std::int32_t>(i), results_[at], longest_values_[at]);
    }
  }
}

}  // namespace kvasir::runtime
