#include "io/finite_check.h"

#include <fmt/format.h>

#include <cstddef>

#include "base/printable.h"

namespace kvasir::io {
namespace {

bool is_finite(float value) { return value - value == 0.0f; }

// Requires: the row is not finite.
std::unexpected<Error> describe(const TensorView& tensor, std::int64_t row_index) {
  const DTypeInfo& format = info_of(tensor.dtype);
  const std::byte* row = tensor.row(row_index);
  std::int64_t element = 0;
  float value = 0.0f;
  for (; element < tensor.row_length(); element += format.block_elements) {
    const std::byte* block = row + element / format.block_elements * format.block_bytes;
    for (const quant::FloatField& field : format.floats) {
      value = field.value(block);
      if (!is_finite(value)) break;
    }
    if (!is_finite(value)) break;
  }
  return make_error(ErrorKind::kBadFile,
                    fmt::format("tensor {}: row {}, element {}: the {} is {}, weights must be finite",
                                printable(tensor.name), row_index, element,
                                format.block_elements > 1 ? "block scale" : "value", value));
}

}  // namespace

Status check_finite(const TensorView& tensor, std::int64_t row_begin, std::int64_t row_end) {
  const quant::IsFiniteRow is_finite_row = info_of(tensor.dtype).is_finite_row;
  for (std::int64_t row = row_begin; row < row_end; ++row) {
    if (!is_finite_row(tensor.row(row), tensor.row_length())) return describe(tensor, row);
  }
  return {};
}

Status check_finite(const TensorView& tensor) { return check_finite(tensor, 0, tensor.num_rows()); }

}  // namespace kvasir::io
