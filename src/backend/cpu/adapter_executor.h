// Adapters: what they add to the products of a step, row by row.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/cpu_tensors.h"
#include "backend/cpu/matmul_executor.h"
#include "backend/cpu/step_rows.h"
#include "backend/memory_source.h"
#include "base/thread_pool.h"
#include "kernels/table.h"
#include "quant/dtype.h"

namespace kvasir::backend {

// Two small matrices for each weight, F32 as that is or F16. The rank is filled up with zeros to whole row groups.
class CpuAdapter final : public Adapter {
 public:
  struct LowRank {
    std::unique_ptr<CpuMatrix> a, b;  // [rank, inputs], [outputs, rank]
    float factor = 1.0f;
  };
  std::map<const Matrix*, LowRank> parts;
};

// Neighbouring rows of one adapter and scale are multiplied together; a row's sums do not depend on them. Borrows pool, matrices
// and the step's rows. One caller at a time, but for make_adapter(), which touches nothing that add() does.
class AdapterExecutor {
 public:
  AdapterExecutor(const kernels::KernelTable& kernels, ThreadPool& pool, MatmulExecutor& matmuls, const StepRows& rows)
      : kernels_(kernels), pool_(pool), matmuls_(matmuls), rows_(rows) {}

  Result<std::unique_ptr<Adapter>> make_adapter(std::span<const AdapterPart> parts, MemorySource& memory);
  std::int64_t adapter_bytes(std::span<const AdapterPart> parts) const;
  // op.out += b (a in) for the rows whose slices name an adapter with such a part.
  void add(const CpuActivation& in, std::span<const MatmulOp> ops);

 private:
  // Rows of one adapter and one of the products.
  struct Segment {
    const CpuAdapter::LowRank* part = nullptr;
    const MatmulOp* op = nullptr;
    float scale = 1.0f;
    std::int32_t first_row = 0;
    std::int32_t num_rows = 0;
    float* inner = nullptr;  // [num_rows, rank]: a in
  };

  Result<std::unique_ptr<CpuMatrix>> pack(const std::vector<float>& numbers, std::int64_t row_length, DType dtype,
                                          MemorySource& memory);
  void find_segments(std::span<const MatmulOp> ops);
  void shrink(const CpuActivation& in, const Segment& segment) const;
  void expand(const Segment& segment) const;

  const kernels::KernelTable& kernels_;
  ThreadPool& pool_;
  MatmulExecutor& matmuls_;
  const StepRows& rows_;
  std::vector<Segment> segments_;
  std::vector<float> inner_;
};

}  // namespace kvasir::backend
