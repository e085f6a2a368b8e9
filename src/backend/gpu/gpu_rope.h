// Rotary embedding of a step's queries and keys on a GPU, and the write of keys and values into their cells.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/step_angles.h"
#include "backend/cpu/step_rows.h"
#include "backend/gpu/device_array.h"
#include "backend/gpu/device_copies.h"
#include "backend/gpu/gpu_cells.h"
#include "backend/gpu/row_flags.h"

namespace kvasir::backend {

// Borrows all that it is given. Thread safety: none.
class GpuRope {
 public:
  GpuRope(GpuDevice& device, DeviceCopies& copies, const kernels::KernelTable& kernels, ThreadPool& pool, StepRows& rows,
          RowFlags& flags, GpuCells& cells);

  // After the rows have the batch of the step.
  void begin_step(std::span<const RopeTable> ropes) { angles_.begin_step(ropes); }
  // After rows were left out: the others' angles are computed anew.
  void forget_angles() { angles_.forget(); }
  // As Backend has it.
  void rope_and_store(const RopeAndStoreOp& op);

 private:
  const float* device_angles(std::size_t rope);
  void norm_parts(Rows rows, std::int32_t width, const float* weight, float eps);
  void scale_by_position(const RopeAndStoreOp& op);

  GpuDevice& device_;
  DeviceCopies& copies_;
  StepRows& rows_;
  RowFlags& flags_;
  GpuCells& cells_;
  StepAngles angles_;
  std::vector<std::unique_ptr<DeviceArray<float>>> device_angles_;  // by table
};

}  // namespace kvasir::backend
