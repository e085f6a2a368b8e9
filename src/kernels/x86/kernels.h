// The kernels of x86's instruction sets, for their tables. They instantiate generic/ over their own vectors.
// Float kernels agree bit for bit with each other, matmuls with `ref` too.
#pragma once

#include <cstdint>

#include "kernels/isa.h"

namespace kvasir::kernels::avx2 {
#include "kernels/generic/float_kernels-inl.h"
#include "kernels/generic/matmul_kernels-inl.h"
extern const ProbeLoops kProbeLoops;
}  // namespace kvasir::kernels::avx2

namespace kvasir::kernels::avx512 {
#include "kernels/generic/float_kernels-inl.h"
#include "kernels/generic/matmul_kernels-inl.h"
extern const ProbeLoops kProbeLoops;
}  // namespace kvasir::kernels::avx512

// The rest is AVX-512's.
namespace kvasir::kernels::amx {
void nibble_plane_matmul(const MatmulArgs& args);
MatmulKernel matmul_of(DType dtype);
}  // namespace kvasir::kernels::amx
