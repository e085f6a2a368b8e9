// The scalar kernels: obvious code, and the oracle of all others.
#pragma once

#include <cstdint>

#include "kernels/isa.h"

namespace kvasir::kernels::ref {
#include "kernels/generic/float_kernels-inl.h"
#include "kernels/generic/matmul_kernels-inl.h"
extern const ProbeLoops kProbeLoops;
}  // namespace kvasir::kernels::ref
