#include "quant/fit/formats.h"

namespace kvasir::quant {

const GridFormat* grid_format(DType dtype) {
  const GridFormat* format = short_block_format(dtype);
  return format != nullptr ? format : super_block_format(dtype);
}

const FittedFormat* fitted_format(DType dtype) {
  const FittedFormat* format = grid_format(dtype);
  return format != nullptr ? format : codebook_format(dtype);
}

}  // namespace kvasir::quant
