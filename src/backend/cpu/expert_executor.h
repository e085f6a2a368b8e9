// Mixture-of-experts layers: routing, the experts' matmuls over rows grouped by expert, the weighted sum.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/activation_quantizer.h"
#include "backend/cpu/cpu_tensors.h"
#include "backend/cpu/expert_rows.h"
#include "backend/cpu/grouped_matmul.h"
#include "backend/cpu/matmul_executor.h"
#include "backend/cpu/step_rows.h"
#include "backend/memory_source.h"
#include "base/thread_pool.h"
#include "kernels/table.h"

namespace kvasir::backend {

// An expert's matrix is a range of row groups of the packed one. Every expert computes its rows as one matmul, so
// its weights are read once. A row's outputs do not depend on the rows beside it: routing is a function of the row,
// its quantised inputs are copied bit by bit, a matmul's outputs are functions of their row, and the sum is in
// ascending order of experts.
//
// Borrows all that it is given. One caller at a time.
class ExpertExecutor {
 public:
  ExpertExecutor(const kernels::KernelTable& kernels, ThreadPool& pool, const MatmulExecutor& matmuls,
                 ActivationQuantizer& quantizer, StepRows& rows);

  // Keeps the inputs of down matrices as floats, also where these read bytes. Before make_expert_rows().
  void keep_inputs_of_down() { keeps_inputs_of_down_ = true; }
  // As Backend has them.
  Result<std::unique_ptr<ExpertRows>> make_expert_rows(const ExpertShape& shape, MemorySource& memory);
  void route(const RouteOp& op, CpuExpertRows& experts);
  void add_experts(const ExpertMlpOp& op, const CpuActivation& in, CpuExpertRows& experts, Rows out);
  void add_gated(Rows gate_rows, Rows y, float scale, Rows out);
  // Bytes of the experts that had no rows, so far.
  std::int64_t skipped_bytes() const { return skipped_bytes_; }

 private:
  // Calls fn(tile, worker): alone when all of it is small.
  template <class F>
  void for_tiles(const CpuExpertRows& experts, std::int64_t floats_per_row, const F& fn);
  void gather(const CpuActivation& in, CpuExpertRows& experts);
  void multiply(const ExpertProjection& projection, const GroupedActivation& in, const CpuExpertRows& experts,
                Rows out);
  void gate(Gate activation, CpuExpertRows& experts);
  void add_weighted(const ExpertMlpOp& op, CpuExpertRows& experts, Rows out);
  float* scratch_row(int worker) { return worker_rows_[static_cast<std::size_t>(worker)].data(); }

  const kernels::KernelTable& kernels_;
  ThreadPool& pool_;
  const MatmulExecutor& matmuls_;
  ActivationQuantizer& quantizer_;
  StepRows& rows_;
  GroupedMatmul grouped_;
  bool keeps_inputs_of_down_ = false;
  std::vector<MatmulPart> parts_;
  std::int64_t skipped_bytes_ = 0;
  std::vector<std::vector<float>> worker_rows_;  // per worker: two rows of the widest kind
};

}  // namespace kvasir::backend
