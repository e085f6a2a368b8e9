// Every instruction set's matmul kernels, for the tables. `ref` is scalar and the oracle; the others
// instantiate generic/matmul*-inl.h over their dot.h. All agree bit for bit.
#pragma once

#include <cstdint>

#include "kernels/table.h"

namespace kvasir::kernels {
using MatmulKernel = void (*)(const MatmulArgs&);
}  // namespace kvasir::kernels

namespace kvasir::kernels::ref {
#include "kernels/generic/matmul_kernels-inl.h"
}  // namespace kvasir::kernels::ref

namespace kvasir::kernels::avx2 {
#include "kernels/generic/matmul_kernels-inl.h"
}  // namespace kvasir::kernels::avx2

namespace kvasir::kernels::avx512 {
#include "kernels/generic/matmul_kernels-inl.h"
}  // namespace kvasir::kernels::avx512

// The rest is AVX-512's.
namespace kvasir::kernels::amx {
void split_matmul(const MatmulArgs& args);
MatmulKernel matmul_of(DType dtype);
}  // namespace kvasir::kernels::amx
