// Packed matrices and their products: how a product is cut into tasks, and what is done with outputs while
// they are in a worker's caches.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <span>

#include "backend/backend.h"
#include "backend/cpu/cpu_tensors.h"
#include "backend/cpu/weight_prefetcher.h"
#include "backend/memory_source.h"
#include "base/thread_pool.h"
#include "kernels/table.h"

namespace kvasir::backend {

// A product that is to be cut into tasks.
struct MatmulSize {
  std::int32_t num_tokens = 0;
  std::int64_t float_width = 0;  // of the inputs where they are floats, else 0
  // Totals over all matrices that share the op.
  std::int64_t num_groups = 0;
  std::int64_t num_bytes = 0;
  std::int64_t tile_groups = 1;  // row groups that must not be parted
};

// Row groups and tokens of one task.
struct MatmulCut {
  std::int64_t groups_per_task;
  std::int64_t tokens_per_task;
};

// An addition to the outputs of a product while they are in a worker's caches. Any worker calls both, at any time.
class TileAddition {
 public:
  virtual ~TileAddition() = default;
  // Called as a task begins, before its product: of row groups [group_begin, group_end) of op.weight.
  virtual void prepare(const MatmulOp& op, std::int64_t group_begin, std::int64_t group_end) = 0;
  // Adds to these outputs of some rows.
  virtual void add(const MatmulOp& op, std::int64_t group_begin, std::int64_t group_end, std::int64_t first_row,
                   std::int64_t num_rows) = 0;
};

// Borrows the table, the pool and the prefetcher. One caller at a time.
class MatmulExecutor {
 public:
  MatmulExecutor(const kernels::KernelTable& kernels, ThreadPool& pool, Precision precision,
                 WeightPrefetcher& prefetcher)
      : kernels_(kernels), pool_(pool), precision_(precision), prefetcher_(prefetcher) {}

  // As Backend has them.
  Result<std::unique_ptr<Matrix>> make_matrix(const TensorView& tensor, MatrixUse use, MemorySource& memory);
  Result<std::unique_ptr<Matrix>> adopt_matrix(const TensorView& tensor, MatrixUse use,
                                               std::span<const std::byte> packed);
  Result<PackedSize> packed_size(const TensorView& tensor, MatrixUse use) const;
  void pack_rows(const TensorView& rows, std::int64_t first_row, Matrix& matrix);
  // All rows into the bytes of an adopted matrix, on the calling thread, whatever the pool does.
  void pack_alone(const TensorView& rows, const CpuMatrix& matrix, std::byte* packed) const;

  // Whether a matrix of that row length takes float activations: of those that are no experts', or of those.
  bool reads_floats(std::int64_t row_length) const { return float_widths_.contains(row_length); }
  bool reads_quantized(std::int64_t row_length) const { return quantized_widths_.contains(row_length); }
  bool experts_read_floats(std::int64_t row_length) const {
    return expert_float_widths_.contains(row_length);
  }
  bool reads_floats(const CpuMatrix& matrix) const { return format_of(matrix).reads_floats; }

  MatmulCut cut_of(const MatmulSize& size) const;
  void multiply(const CpuMatrix& matrix, const kernels::MatmulArgs& args) const;

  // The products of the first num_rows rows of `in` with every matrix of `ops`; `accumulate` adds them to what
  // the outputs are. `addition`: null, or what comes on top.
  void run(const CpuActivation& in, std::int32_t num_rows, std::span<const MatmulOp> ops, bool accumulate,
           TileAddition* addition = nullptr);
  // The outputs of these row groups of op.weight alone, ascending; no other is written.
  void run_groups(const CpuActivation& in, std::int32_t num_rows, const MatmulOp& op,
                  std::span<const std::int32_t> groups);

 private:
  Result<std::unique_ptr<CpuMatrix>> lay_out(const TensorView& tensor, MatrixUse use) const;
  void pack_group(const TensorView& rows, std::int64_t group, std::int64_t at, const CpuMatrix& target,
                  std::byte* all_packed) const;
  void set_bytes(const std::byte* packed, CpuMatrix& matrix, MatrixUse use);
  kernels::MatmulArgs part_of(const CpuMatrix& matrix, const CpuActivation& in, const MatmulCut& cut,
                              std::int64_t group, std::int64_t token, std::int32_t num_rows) const;
  void finish(const MatmulOp& op, const kernels::MatmulArgs& args, std::int64_t first_row);
  const kernels::FormatKernels& format_of(const CpuMatrix& matrix) const {
    if (matrix.format != nullptr) return *matrix.format;
    const auto& formats = precision_ == Precision::kFast ? kernels_.w8a8_formats : kernels_.formats;
    return formats[static_cast<std::size_t>(matrix.dtype)];
  }

  const kernels::KernelTable& kernels_;
  ThreadPool& pool_;
  const Precision precision_;
  WeightPrefetcher& prefetcher_;
  // Row lengths of the matrices that take float activations.
  std::set<std::int64_t> float_widths_, expert_float_widths_, quantized_widths_;
};

}  // namespace kvasir::backend
