#include "backend/cpu/step_rows.h"

#include <algorithm>
#include <numeric>

namespace kvasir::backend {

void StepRows::begin_step(const BatchInput& batch) {
  batch_ = batch;
  const auto num_rows = static_cast<std::size_t>(batch.num_rows());
  non_finite_.assign(num_rows, 0);
  planned_.resize(num_rows);
  std::iota(planned_.begin(), planned_.end(), 0);
  sequences_.resize(num_rows);
  positions_.resize(num_rows);
  for (std::size_t i = 0; i < batch.sequences.size(); ++i) {
    const BatchSequence& slice = batch.sequences[i];
    for (std::int32_t row = 0; row < slice.num_rows; ++row) {
      sequences_[static_cast<std::size_t>(slice.first_row + row)] = static_cast<std::int32_t>(i);
      positions_[static_cast<std::size_t>(slice.first_row + row)] = slice.first_position + row;
    }
  }
}

bool StepRows::loses_observed() const {
  return std::ranges::any_of(batch_.sequences, [](const BatchSequence& slice) {
    return slice.num_wanted_rows < std::min(slice.num_rows, slice.observed.num_queries);
  });
}

std::int32_t StepRows::keep_wanted() {
  kept_.clear();
  const auto wants_all = [](const BatchSequence& slice) { return slice.num_wanted_rows == slice.num_rows; };
  if (std::ranges::all_of(batch_.sequences, wants_all)) return batch_.num_rows();
  wanted_slices_.clear();
  std::int32_t count = 0;
  for (const BatchSequence& slice : batch_.sequences) {
    const std::int32_t num_dropped = slice.num_rows - slice.num_wanted_rows;
    for (std::int32_t i = 0; i < slice.num_wanted_rows; ++i) kept_.push_back(slice.first_row + num_dropped + i);
    wanted_slices_.push_back({.first_row = count,
                              .num_rows = slice.num_wanted_rows,
                              .first_position = slice.first_position + num_dropped,
                              .num_wanted_rows = slice.num_wanted_rows,
                              .observed = slice.observed,
                              .num_draft_rows = slice.num_draft_rows,
                              .adapter = slice.adapter});
    count += slice.num_wanted_rows;
  }
  for (std::size_t row = 0; row < static_cast<std::size_t>(count); ++row) {
    const auto before = static_cast<std::size_t>(kept_[row]);
    planned_[row] = kept_[row];
    sequences_[row] = sequences_[before];
    positions_[row] = positions_[before];
  }
  batch_.token_ids = batch_.token_ids.first(static_cast<std::size_t>(count));
  batch_.sequences = wanted_slices_;
  return count;
}

}  // namespace kvasir::backend
