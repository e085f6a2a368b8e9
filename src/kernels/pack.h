// Packs weight rows from their file layout into the units of packed.h. The same for every instruction set.
#pragma once

#include "kernels/packed.h"
#include "kernels/table.h"

namespace kvasir::kernels {

// FormatKernels of `dtype` with packing filled in and `matmul` left null.
FormatKernels packing_of(DType dtype);
// The same for the fast mode: block formats become what w8a8.h describes, others stay.
FormatKernels w8a8_packing_of(DType dtype);

}  // namespace kvasir::kernels
