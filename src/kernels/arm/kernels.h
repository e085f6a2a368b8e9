// The kernels of ARM's instruction sets, for their tables. They instantiate generic/ over their own vectors, whose
// lanes are x86's: float kernels give the bits of its vector kernels, matmuls those of `ref` too.
#pragma once

#include <cstdint>

#include "kernels/isa.h"

namespace kvasir::kernels::neon {
#include "kernels/generic/float_kernels-inl.h"
#include "kernels/generic/matmul_kernels-inl.h"
extern const ProbeLoops kProbeLoops;
}  // namespace kvasir::kernels::neon

// The rest is NEON's.
namespace kvasir::kernels::dotprod {
void w8a8_matmul(const MatmulArgs& args);
void nibble_plane_matmul(const MatmulArgs& args);
void argmax_bound(const BoundArgs& args);
void argmax_refine(const BoundArgs& args);
MatmulKernel matmul_of(DType dtype);
extern const ProbeLoops kProbeLoops;
}  // namespace kvasir::kernels::dotprod

// The rest is that of SDOT.
namespace kvasir::kernels::i8mm {
void nibble_plane_matmul(const MatmulArgs& args);
MatmulKernel matmul_of(DType dtype);
}  // namespace kvasir::kernels::i8mm
