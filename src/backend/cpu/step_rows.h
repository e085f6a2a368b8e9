// The rows of the batch that a step runs, and which of them met a number that is none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "backend/batch_input.h"

namespace kvasir::backend {

// Thread safety: mark_non_finite() may run on several threads for different rows, and so may what is const;
// everything else by one thread.
class StepRows {
 public:
  // Borrows the batch's arrays until the next step.
  void begin_step(const BatchInput& batch);

  // After keep_wanted() it has the wanted rows alone.
  const BatchInput& batch() const { return batch_; }
  std::int32_t count() const { return batch_.num_rows(); }
  const KvGroupView& group(std::int32_t index) const {
    return batch_.kv_groups[static_cast<std::size_t>(index)];
  }
  std::int32_t sequence_of(std::int32_t row) const { return sequences_[static_cast<std::size_t>(row)]; }
  std::int32_t position_of(std::int32_t row) const { return positions_[static_cast<std::size_t>(row)]; }

  // Leaves the rows that want logits, in order: from then on the batch has these alone, numbered anew. Returns how many
  // there are; row i was row kept()[i]. Once they are alone it does nothing.
  std::int32_t keep_wanted();
  // The rows that the last keep_wanted() left, as they were numbered before it. None when it did nothing.
  std::span<const std::int32_t> kept() const { return kept_; }

  // Whether keep_wanted() would leave out rows whose queries are observed.
  bool loses_observed() const;

  // The number that a row had in the plan.
  std::int32_t planned_row(std::int32_t row) const { return planned_[static_cast<std::size_t>(row)]; }
  void mark_non_finite(std::int32_t row) { mark_planned(planned_row(row)); }
  void mark_planned(std::int32_t row) { non_finite_[static_cast<std::size_t>(row)] = 1; }
  std::span<const std::uint8_t> non_finite() const { return non_finite_; }  // by planned row

 private:
  BatchInput batch_;
  std::vector<std::int32_t> sequences_;
  std::vector<std::int32_t> positions_;
  std::vector<std::uint8_t> non_finite_;      // by planned row
  std::vector<std::int32_t> planned_;         // of each row that is left
  std::vector<std::int32_t> kept_;
  std::vector<BatchSequence> wanted_slices_;  // batch_.sequences after keep_wanted
};

}  // namespace kvasir::backend
