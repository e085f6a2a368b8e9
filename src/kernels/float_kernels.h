// Every instruction set's float kernels, for the tables. `ref` is scalar and the oracle; the others
// instantiate generic/*-inl.h over their simd.h and agree bit for bit with each other.
#pragma once

#include <cstdint>

#include "kernels/table.h"

namespace kvasir::kernels::ref {
#include "kernels/generic/float_kernels-inl.h"
}  // namespace kvasir::kernels::ref

namespace kvasir::kernels::avx2 {
#include "kernels/generic/float_kernels-inl.h"
}  // namespace kvasir::kernels::avx2

namespace kvasir::kernels::avx512 {
#include "kernels/generic/float_kernels-inl.h"
}  // namespace kvasir::kernels::avx512
