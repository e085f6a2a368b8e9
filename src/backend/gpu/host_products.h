// Products of the matrices that a GPU has no room for: the host keeps and multiplies them, the device has inputs and
// outputs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/cpu_tensors.h"
#include "backend/cpu/grouped_matmul.h"
#include "backend/cpu/matmul_executor.h"
#include "backend/cpu/weight_prefetcher.h"
#include "backend/gpu/device_array.h"
#include "backend/gpu/gpu_device.h"
#include "backend/gpu/gpu_product.h"
#include "base/thread_pool.h"
#include "kernels/table.h"

namespace kvasir::backend {

// Gives the bits of the device's own products, which are the CPU's. Borrows all that it is given. Thread safety: none.
class HostProducts {
 public:
  HostProducts(GpuDevice& device, const kernels::KernelTable& kernels, ThreadPool& pool, Precision precision);

  // As Backend has them. The matrix lies in the host's memory.
  Result<std::unique_ptr<CpuMatrix>> make_matrix(const TensorView& tensor);
  void pack_rows(const TensorView& rows, std::int64_t first_row, CpuMatrix& matrix) {
    matmuls_.pack_rows(rows, first_row, matrix);
  }

  // Products of one matrix of the host, without its scale and bias. Inputs and outputs of all lie in one run: those of
  // experts, or of one matmul. One that accumulates is alone.
  void run(std::span<const GpuProduct> products);

 private:
  void bring_inputs(std::span<const GpuProduct> products);
  void send_outputs(const GpuProduct& first, std::int64_t num_rows, std::int32_t width);

  GpuDevice& device_;
  const kernels::KernelTable& kernels_;
  WeightPrefetcher prefetcher_;
  MatmulExecutor matmuls_;
  GroupedMatmul grouped_;
  std::vector<MatmulPart> parts_;
  std::vector<float> floats_, outputs_;
  AlignedBuffer quantized_;
  DeviceArray<float> sent_;
};

}  // namespace kvasir::backend
