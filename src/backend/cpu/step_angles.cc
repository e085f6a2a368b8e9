#include "backend/cpu/step_angles.h"

#include <utility>

#include "backend/cpu/row_loop.h"

namespace kvasir::backend {

StepAngles::StepAngles(const kernels::KernelTable& kernels, ThreadPool& pool, const StepRows& rows)
    : kernels_(kernels), pool_(pool), rows_(rows), angles_(pool.num_threads()) {}

void StepAngles::begin_step(std::span<const RopeTable> ropes) {
  angles_.set_ropes(ropes);
  styles_.clear();
  factors_.clear();
  offsets_.clear();
  std::int64_t total = 0;
  for (const RopeTable& rope : ropes) {
    styles_.push_back(rope.style);
    factors_.push_back(rope.factor);
    offsets_.push_back(total);
    total += 2 * static_cast<std::int64_t>(rope.inverse_frequencies.size()) * rows_.count();
  }
  values_.resize(static_cast<std::size_t>(total));
  is_computed_.assign(ropes.size(), 0);
}

std::span<const float> StepAngles::of(std::size_t rope) {
  const std::int64_t half = angles_.half_dim(rope);
  if (half == 0) return {};
  float* const first = values_.data() + offsets_[rope];
  if (std::exchange(is_computed_[rope], 1) == 0) {
    for_rows(pool_, rows_.count(), half * 64, [&](std::int32_t row, int worker) {
      float* const values = first + 2 * half * row;
      angles_.compute(rope, rows_.position_of(row), worker, values);
      if (factors_[rope] != 1.0f) kernels_.scale(values, factors_[rope], 2 * half, values);
    });
  }
  return {first, static_cast<std::size_t>(2 * half * rows_.count())};
}

}  // namespace kvasir::backend
