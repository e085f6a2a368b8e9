// Inputs of matmuls: their memory, and how their rows are written and quantised.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/cpu_tensors.h"
#include "backend/cpu/step_rows.h"
#include "backend/memory_source.h"
#include "base/thread_pool.h"
#include "kernels/table.h"

namespace kvasir::backend {

// Borrows the table and the step's rows. float_row() and quantising may run on several threads for different
// rows, everything else by one thread.
class ActivationQuantizer {
 public:
  ActivationQuantizer(const kernels::KernelTable& kernels, const ThreadPool& pool, Precision precision,
                      StepRows& rows);

  // The forms that matrices of an activation's width read.
  struct Readers {
    bool of_floats = false, of_quantized = false;
  };
  Result<std::unique_ptr<Activation>> make(std::int32_t max_rows, std::int32_t width, Readers readers,
                                           MemorySource& memory);

  // Where a worker writes row `row` of `out` before it is quantised.
  float* float_row(const CpuActivation& out, std::int32_t row, int worker) {
    return out.floats_are_read ? out.row(row) : worker_rows_[static_cast<std::size_t>(worker)].data();
  }
  // Row `row` of the num_rows of `out`, from `floats`; a bad value in it is blamed on step_row. An activation that
  // nobody reads quantised is looked at alone.
  void quantize(CpuActivation& out, const float* floats, std::int32_t row, std::int32_t num_rows,
                std::int32_t step_row);
  // The same into num_rows quantised rows of `width` that belong to no activation.
  void quantize_to(std::byte* quantized, const float* floats, std::int64_t width, std::int32_t row,
                   std::int32_t num_rows, std::int32_t step_row);

 private:
  const kernels::KernelTable& kernels_;
  const Precision precision_;
  StepRows& rows_;
  std::vector<std::vector<float>> worker_rows_;  // per worker: a row of the widest activation
};

}  // namespace kvasir::backend
