// What host code calls: one function for each kernel, which cuts the work into blocks and launches it. All pointers
// are of the device. A launcher returns once the launch is queued; errors stay in the Device.
//
// The bits are those of the CPU's vector kernels (kernels/table.h), whatever the cut.
#pragma once

#include <cstdint>

#include "backend/cuda/simt/simt.h"
#include "quant/dtype.h"

namespace kvasir::cuda {

// out = activations x W^T, or out += it.
struct MatmulArgs {
  const void* weights = nullptr;    // packed groups of 16 rows (kernels/packed.h), one behind the other
  const void* quantized = nullptr;  // num_tokens rows as kernels/activation.h has them; for formats of blocks
  const float* x = nullptr;         // [num_tokens, k]; for F32, F16 and BF16
  std::int64_t k = 0;
  std::int64_t num_rows = 0;  // outputs
  std::int32_t num_tokens = 0;
  float* out = nullptr;         // [num_tokens, out_stride]
  std::int64_t out_stride = 0;  // in floats
  bool accumulate = false;
};

inline constexpr int kMaxMatvecTokens = 8;

// For at most kMaxMatvecTokens tokens: bound by the bytes of the weights. False for a format without blocks.
bool matvec(simt::Device& device, DType dtype, const MatmulArgs& args);

}  // namespace kvasir::cuda
