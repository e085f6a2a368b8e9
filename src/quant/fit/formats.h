// The encoders by the kind of their blocks: fitted_format() knows them all.
#pragma once

#include "quant/fit/fitted_format.h"

namespace kvasir::quant {

// Null for types of another kind.
const FittedFormat* short_block_format(DType dtype);
const FittedFormat* super_block_format(DType dtype);

}  // namespace kvasir::quant
