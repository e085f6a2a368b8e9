// Products of many small matmuls, each with its own rows and its own part of a matrix, as one op.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/cpu/cpu_tensors.h"
#include "backend/cpu/matmul_executor.h"
#include "base/thread_pool.h"
#include "kernels/table.h"

namespace kvasir::backend {

// The product of some rows with row groups [first_group, first_group + num_groups) of a matrix: one expert's.
struct MatmulPart {
  const CpuMatrix* weight = nullptr;
  std::int64_t first_group = 0;
  std::int64_t num_groups = 0;
  float scale = 1.0f;           // of the product
  const float* bias = nullptr;  // [num_groups * kRowsPerGroup] or null
  // Inputs, as of MatmulArgs: the one that the matrix reads.
  const float* x = nullptr;
  const std::byte* quantized = nullptr;
  std::int32_t num_tokens = 0;
  Rows out;  // [num_tokens, num_groups * kRowsPerGroup]
};

// Borrows the table, the pool and the executor. One caller at a time.
class GroupedMatmul {
 public:
  GroupedMatmul(const kernels::KernelTable& kernels, ThreadPool& pool, const MatmulExecutor& matmuls)
      : kernels_(kernels), pool_(pool), matmuls_(matmuls) {}

  // Tasks are (part, run of row groups, run of tokens), in the order of the parts: the largest first, so that no
  // worker is left with one at the end.
  void run(std::span<const MatmulPart> parts);

 private:
  // How one part is cut, and the tasks of those before it.
  struct Cut {
    std::int64_t first_task = 0;
    std::int64_t groups_per_task = 0;
    std::int64_t tokens_per_task = 0;
    std::int64_t token_tasks = 0;
  };
  std::int64_t cut(std::span<const MatmulPart> parts);
  void run_task(const MatmulPart& part, const Cut& cut, std::int64_t task) const;

  const kernels::KernelTable& kernels_;
  ThreadPool& pool_;
  const MatmulExecutor& matmuls_;
  std::vector<Cut> cuts_;  // by part
};

}  // namespace kvasir::backend
