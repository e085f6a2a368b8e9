// A GPU's packed matrices and their products.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <set>
#include <span>

#include "backend/backend.h"
#include "backend/gpu/device_copies.h"
#include "backend/gpu/gpu_device.h"
#include "backend/gpu/gpu_product.h"
#include "backend/gpu/gpu_tensors.h"
#include "backend/gpu/host_products.h"
#include "base/thread_pool.h"
#include "kernels/table.h"

namespace kvasir::backend {

// Packs as the CPU does, by its kernel table. Borrows all that it is given. Thread safety: none.
class GpuMatmul {
 public:
  GpuMatmul(GpuDevice& device, const kernels::KernelTable& kernels, ThreadPool& pool, Precision precision, DeviceCopies& copies)
      : device_(device),
        kernels_(kernels),
        pool_(pool),
        precision_(precision),
        copies_(copies),
        host_(device, kernels, pool, precision) {}

  // As Backend has them.
  void keep_layers(std::int32_t num_layers) { num_device_layers_ = num_layers; }
  std::int64_t host_weight_bytes() const { return host_weight_bytes_; }
  Result<std::unique_ptr<Matrix>> make_matrix(const TensorView& tensor, MatrixUse use);
  Result<std::unique_ptr<Matrix>> adopt_matrix(const TensorView& tensor, MatrixUse use, std::span<const std::byte> packed);
  Result<PackedSize> packed_size(const TensorView& tensor) const;
  void pack_rows(const TensorView& rows, std::int64_t first_row, Matrix& matrix);

  // Whether quantised rows are those of the fast mode.
  bool reads_w8a8() const { return precision_ == Precision::kFast; }
  // Whether some matrix of that row length reads quantised rows.
  bool reads_quantized(std::int64_t row_length) const { return quantized_widths_.contains(row_length); }

  // The products of the first num_rows rows of `in` with every matrix of `ops`; `accumulate` adds them to what the
  // outputs are.
  void run(const GpuActivation& in, std::int32_t num_rows, std::span<const MatmulOp> ops, bool accumulate);
  // The outputs of these row groups of op.weight alone, ascending; no other is written.
  void run_groups(const GpuActivation& in, std::int32_t num_rows, const MatmulOp& op, std::span<const std::int32_t> groups);
  // The products are of one matrix; their inputs lie in one run, and so do their outputs.
  void multiply(std::span<const GpuProduct> products);

 private:
  Result<std::unique_ptr<GpuMatrix>> lay_out(const TensorView& tensor) const;
  void note_reader(const GpuMatrix& matrix) {
    if (!matrix.reads_floats) quantized_widths_.insert(matrix.row_length);
  }
  Status upload(std::span<const std::byte> packed, const TensorView& tensor, GpuMatrix& matrix);
  void scale_and_bias(const GpuProduct& product);
  GpuProduct product_of(const GpuActivation& in, std::int32_t num_rows, const MatmulOp& op);
  const kernels::FormatKernels& format_of(DType dtype) const {
    return (reads_w8a8() ? kernels_.w8a8_formats : kernels_.formats)[static_cast<std::size_t>(dtype)];
  }

  GpuDevice& device_;
  const kernels::KernelTable& kernels_;
  ThreadPool& pool_;
  const Precision precision_;
  DeviceCopies& copies_;
  HostProducts host_;
  std::int32_t num_device_layers_ = std::numeric_limits<std::int32_t>::max();
  std::int64_t host_weight_bytes_ = 0;
  std::set<std::int64_t> quantized_widths_;
};

}  // namespace kvasir::backend
