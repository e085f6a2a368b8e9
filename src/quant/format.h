// The weight formats: how the bytes of a row become numbers.
#pragma once

#include <cstdint>

#include "tensor/dtype.h"

namespace kvasir::quant {

// Widens one row of `num_elements` (a multiple of the format's block) in its file layout to float32.
// `row` needs no alignment. This is the definition of each format's numbers; kernels are checked against it.
using UnpackRow = void (*)(const void* row, std::int64_t num_elements, float* out);

UnpackRow unpack_row_of(DType dtype);

}  // namespace kvasir::quant
