// Rotary embedding of a step's queries and keys, and the write of keys and values into their cells.
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
class RopeExecutor {
 public:
  RopeExecutor(const kernels::KernelTable& kernels, ThreadPool& pool, StepRows& rows);

  // After the rows have the batch of the step.
  void begin_step(std::span<const RopeTable> ropes);
  // After rows were left out: the others' angles are computed anew.
  void forget_angles() { is_computed_.assign(is_computed_.size(), 0); }
  // As Backend has it.
  void rope_and_store(const RopeAndStoreOp& op);

 private:
  void compute_angles(std::size_t rope);
  void store(const RopeAndStoreOp& op, const KvGroupView& group, std::int32_t row);

  const kernels::KernelTable& kernels_;
  ThreadPool& pool_;
  StepRows& rows_;
  RopeAngles angles_;

  // The current step.
  std::vector<kernels::RopeStyle> styles_;
  std::vector<float> factors_;             // on cos and sin, by table
  std::vector<std::int64_t> offsets_;      // of each table in values_
  std::vector<std::uint8_t> is_computed_;  // by table
  std::vector<float> values_;              // per table and row: cos then sin, [rotary_dim / 2] each
};

}  // namespace kvasir::backend
