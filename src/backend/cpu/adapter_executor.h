// Adapters: what they add to the products of a step, row by row.
#pragma once

#include <atomic>
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

// Two small matrices for each weight: F32 as that is or F16, or bytes. The rank is filled up with zeros to whole row groups.
class CpuAdapter final : public Adapter {
 public:
  struct LowRank {
    std::unique_ptr<CpuMatrix> a, b;  // [rank, inputs], [outputs, rank]
    float factor = 1.0f;
  };
  std::map<const Matrix*, LowRank> parts;
  // All of them, one behind the other as they were given: a step reads them so, and memory reads on where one ends.
  AlignedBuffer memory;
};

// Neighbouring rows of one adapter and scale are a segment, which is multiplied together; a row's sums do not depend on that.
// Few segments are worked on by the workers of the base's product as they go: they share a's products among them first, and add
// b's to each tile, so nobody waits for an adapter alone. Many are tasks of their own behind it: a call for each tile and segment
// would cost more. Borrows pool, matrices and the step's rows. One caller at a time, but for make_adapter(), which touches nothing
// that a product does.
class AdapterExecutor final : public TileAddition {
 public:
  AdapterExecutor(const kernels::KernelTable& kernels, ThreadPool& pool, MatmulExecutor& matmuls, const StepRows& rows)
      : kernels_(kernels), pool_(pool), matmuls_(matmuls), rows_(rows) {}

  // The type of the adapters to come. Before the first.
  void set_type(AdapterType type) { type_ = type; }
  Result<std::unique_ptr<Adapter>> make_adapter(std::span<const AdapterPart> parts, MemorySource& memory);
  std::int64_t adapter_bytes(std::span<const AdapterPart> parts) const;
  // Around the products of `in` with ops: op.out += b (a in) for the rows whose slices name an adapter with such a part. What
  // begin() gives is for the products; null where they have nothing to add. Borrows both until finish().
  TileAddition* begin(const CpuActivation& in, std::span<const MatmulOp> ops);
  void finish();
  void prepare(const MatmulOp& op, std::int64_t group_begin, std::int64_t group_end) override;
  void add(const MatmulOp& op, std::int64_t group_begin, std::int64_t group_end, std::int64_t first_row,
           std::int64_t num_rows) override;

 private:
  // Rows of one adapter and scale, and one of the products.
  struct Segment {
    const CpuAdapter::LowRank* part = nullptr;
    const MatmulOp* op = nullptr;
    float scale = 1.0f;
    std::int32_t first_row = 0;
    std::int32_t num_rows = 0;
    float* inner = nullptr;  // [num_rows, rank]: a in
  };

  DType dtype_of(const AdapterPart& part) const;
  MatrixUse use() const { return type_ == AdapterType::kInt8 ? MatrixUse::kByteAdapter : MatrixUse::kAdapter; }
  // Into the first bytes of `room`, which is what is left then.
  Result<std::unique_ptr<CpuMatrix>> pack(const std::vector<float>& numbers, std::int64_t row_length, DType dtype,
                                          std::span<std::byte>& room);
  void find_segments(std::span<const MatmulOp> ops);
  void shrink(const Segment& segment) const;
  // The outputs of some of its rows.
  void expand(const Segment& segment, std::int64_t group_begin, std::int64_t group_end, std::int64_t first_row,
              std::int64_t end_row) const;

  const kernels::KernelTable& kernels_;
  ThreadPool& pool_;
  MatmulExecutor& matmuls_;
  const StepRows& rows_;
  AdapterType type_ = AdapterType::kF16;
  std::vector<Segment> segments_;
  std::vector<float> inner_;
  const CpuActivation* in_ = nullptr;
  std::atomic<std::int64_t> next_to_shrink_{0}, num_shrunk_{0};
};

}  // namespace kvasir::backend
