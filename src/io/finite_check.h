// Looks for weights that are not numbers before they poison every token.
#pragma once

#include <cstdint>

#include "kvasir/result.h"
#include "tensor/tensor_view.h"

namespace kvasir::io {

// Checks what can be NaN or infinite in rows [row_begin, row_end): every element of F32, F16 and BF16, every
// scale and minimum of the block formats (their integers are always numbers). Reads each such value once, at
// about the speed of memory; call it per row range from the threads that pack, while the rows are in cache.
// Error: kBadFile naming the tensor, the row and the first element concerned.
Status check_finite(const TensorView& tensor, std::int64_t row_begin, std::int64_t row_end);

// All rows.
Status check_finite(const TensorView& tensor);

}  // namespace kvasir::io
