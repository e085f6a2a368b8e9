// cos and sin of every row of a step, for each kind of RoPE that its layers ask for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/rope_angles.h"
#include "backend/cpu/step_rows.h"
#include "base/thread_pool.h"
#include "kernels/table.h"

namespace kvasir::backend {

// Borrows all that it is given. One caller at a time.
class StepAngles {
 public:
  StepAngles(const kernels::KernelTable& kernels, ThreadPool& pool, const StepRows& rows);

  // After the rows have the batch of the step.
  void begin_step(std::span<const RopeTable> ropes);
  // After rows were left out: the others' angles are computed anew.
  void forget() { is_computed_.assign(is_computed_.size(), 0); }

  // [rows, 2, half_dim]: of a row cos, then sin. Computed when the first layer asks: a step of some layers alone may need
  // one kind of several. Empty where nothing turns.
  std::span<const float> of(std::size_t rope);
  bool is_computed(std::size_t rope) const { return is_computed_[rope] != 0; }
  std::int32_t half_dim(std::size_t rope) const { return angles_.half_dim(rope); }
  kernels::RopeStyle style(std::size_t rope) const { return styles_[rope]; }

 private:
  const kernels::KernelTable& kernels_;
  ThreadPool& pool_;
  const StepRows& rows_;
  RopeAngles angles_;

  // The current step.
  std::vector<kernels::RopeStyle> styles_;
  std::vector<float> factors_;             // on cos and sin, by table
  std::vector<std::int64_t> offsets_;      // of each table in values_
  std::vector<std::uint8_t> is_computed_;  // by table
  std::vector<float> values_;
};

}  // namespace kvasir::backend
