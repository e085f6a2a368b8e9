// A product of a matrix of a GPU's backend.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "backend/gpu/gpu_tensors.h"
#include "backend/tensors.h"
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

inline std::int64_t num_outputs_of(const GpuProduct& product) {
  return std::min(product.num_groups * kernels::kRowsPerGroup,
                  product.weight->num_rows - product.first_group * kernels::kRowsPerGroup);
}

}  // namespace kvasir::backend
