// Quantising an activation row: the definition that the other instruction sets match bit for bit.
#include <cmath>
#include <cstring>

#include "kernels/activation.h"
#include "kernels/matmul_kernels.h"

namespace kvasir::kernels::ref {
namespace {

ActivationBlock quantize_block(const float* x, float amax) {
  ActivationBlock block;
  block.scale = activation_scale(amax);
  const float inverse = inverse_of_scale(block.scale);
  int sum = 0, sum_high = 0;
  for (int i = 0; i < kActivationBlock; ++i) {
    const int q = static_cast<int>(std::nearbyint(x[i] * inverse));
    block.q[i] = static_cast<std::int8_t>(q);
    sum += q;
    if (i >= 16) sum_high += q;
  }
  block.scaled_sum = block.scale * static_cast<float>(sum);
  block.neg_sum = -sum;
  block.neg_sum_high = -sum_high;
  return block;
}

}  // namespace

bool quantize_row(const float* x, std::int64_t k, void* quantized) {
  auto* blocks = static_cast<ActivationBlock*>(quantized);
  for (std::int64_t b = 0; b < k / kActivationBlock; ++b, x += kActivationBlock) {
    float amax = 0.0f;
    bool finite = true;
    for (int i = 0; i < kActivationBlock; ++i) {
      finite = finite && std::isfinite(x[i]);
      amax = std::fmax(amax, std::fabs(x[i]));
    }
    if (!finite) {
      std::memset(quantized, 0, static_cast<std::size_t>(quantized_row_bytes(k)));
      return false;
    }
    blocks[b] = quantize_block(x, amax);
  }
  return true;
}

}  // namespace kvasir::kernels::ref
