// Rotary embedding of a step's queries and keys, and the write of keys and values into their cells.
#pragma once

#include <cstdint>
#include <span>

#include "backend/backend.h"
#include "backend/cpu/step_angles.h"
#include "backend/cpu/step_rows.h"
#include "base/thread_pool.h"
#include "kernels/table.h"

namespace kvasir::backend {

// Borrows all that it is given. One caller at a time.
class RopeExecutor {
 public:
  RopeExecutor(const kernels::KernelTable& kernels, ThreadPool& pool, StepRows& rows);

  // After the rows have the batch of the step.
  void begin_step(std::span<const RopeTable> ropes) { angles_.begin_step(ropes); }
  // After rows were left out: the others' angles are computed anew.
  void forget_angles() { angles_.forget(); }
  // As Backend has it.
  void rope_and_store(const RopeAndStoreOp& op);

 private:
  void store(const RopeAndStoreOp& op, const KvGroupView& group, std::int32_t row);

  const kernels::KernelTable& kernels_;
  ThreadPool& pool_;
  StepRows& rows_;
  StepAngles angles_;
};

}  // namespace kvasir::backend
