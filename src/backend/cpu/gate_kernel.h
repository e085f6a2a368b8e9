// The kernel of a gated feed-forward layer's activation.
#pragma once

#include <cstdint>

#include "backend/backend.h"
#include "kernels/table.h"

namespace kvasir::backend {

// out = activation(gate) * up over n values, of activation(gate) alone where `up` is null.
using GateKernel = void (*)(const float* gate, const float* up, std::int64_t n, float* out);

inline GateKernel gate_kernel(const kernels::KernelTable& kernels, Gate kind) {
  switch (kind) {
    case Gate::kSilu:
      return kernels.silu_mul;
    case Gate::kGeluTanh:
      return kernels.gelu_tanh_mul;
    case Gate::kGeluErf:
      return kernels.gelu_erf_mul;
    case Gate::kSwigluOai:
      return kernels.swiglu_oai;
  }
  return nullptr;
}

}  // namespace kvasir::backend
