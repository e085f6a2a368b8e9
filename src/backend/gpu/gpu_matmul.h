// A GPU's packed matrices and their products.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <span>

#include "backend/backend.h"
#include "backend/gpu/device_copies.h"
#include "backend/gpu/gpu_device.h"
#include "backend/gpu/gpu_tensors.h"
#include "base/thread_pool.h"
#include "kernels/table.h"

namespace kvasir::backend {

// Row groups of a matrix, and the inputs that they are multiplied with: floats or quantised rows, as the matrix reads.
struct GpuProduct {
  const GpuMatrix* weight = nullptr;
  std::int64_t first_group = 0, num_groups = 0;
  const float* x = nullptr;
  const std::byte* quantized = nullptr;
  std::int32_t num_tokens = 0;
  Rows out;  // of the first of these groups
  float scale = 1.0f;
  const float* bias = nullptr;  // of the device, of the first of these groups; or null
  bool accumulates = false;
};

// Packs as the CPU does, by its kernel table. Borrows all that it is given. Thread safety: none.
class GpuMatmul {
 public:
  GpuMatmul(GpuDevice& device, const kernels::KernelTable& kernels, ThreadPool& pool, DeviceCopies& copies)
      : device_(device), kernels_(kernels), pool_(pool), copies_(copies) {}

  // As Backend has them.
  Result<std::unique_ptr<Matrix>> make_matrix(const TensorView& tensor, MatrixUse use);
  Result<std::unique_ptr<Matrix>> adopt_matrix(const TensorView& tensor, MatrixUse use, std::span<const std::byte> packed);
  Result<PackedSize> packed_size(const TensorView& tensor) const;
  void pack_rows(const TensorView& rows, std::int64_t first_row, Matrix& matrix);

  // Whether some matrix of that row length reads quantised rows.
  bool reads_quantized(std::int64_t row_length) const { return quantized_widths_.contains(row_length); }

  // The products of the first num_rows rows of `in` with every matrix of `ops`; `accumulate` adds them to what the
  // outputs are.
  void run(const GpuActivation& in, std::int32_t num_rows, std::span<const MatmulOp> ops, bool accumulate);
  // The outputs of these row groups of op.weight alone, ascending; no other is written.
  void run_groups(const GpuActivation& in, std::int32_t num_rows, const MatmulOp& op, std::span<const std::int32_t> groups);
  void multiply(const GpuProduct& product);

 private:
  Result<std::unique_ptr<GpuMatrix>> lay_out(const TensorView& tensor) const;
  void note_reader(const GpuMatrix& matrix) {
    if (!matrix.reads_floats) quantized_widths_.insert(matrix.row_length);
  }
  Status upload(std::span<const std::byte> packed, const TensorView& tensor, GpuMatrix& matrix);
  GpuProduct product_of(const GpuActivation& in, std::int32_t num_rows, const MatmulOp& op);

  GpuDevice& device_;
  const kernels::KernelTable& kernels_;
  ThreadPool& pool_;
  DeviceCopies& copies_;
  std::set<std::int64_t> quantized_widths_;
};

}  // namespace kvasir::backend
