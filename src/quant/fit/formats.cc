#include "quant/fit/formats.h"

namespace kvasir::quant {

const FittedFormat* fitted_format(DType dtype) {
  const FittedFormat* format = short_block_format(dtype);
  return format != nullptr ? format : super_block_format(dtype);
}

}  // namespace kvasir::quant
