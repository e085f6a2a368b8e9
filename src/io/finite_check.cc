#include "io/finite_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "base/half.h"
#include "base/printable.h"

namespace kvasir::io {
namespace {

// Where the 16-bit floats of a block are.
struct ScaleFields {
  std::int32_t first_byte;  // of the first field in the block
  std::int32_t count;       // adjacent fields
};

ScaleFields scale_fields_of(DType dtype) {
  switch (dtype) {
    case DType::kQ4_1:
    case DType::kQ5_1:
    case DType::kQ4_K:
    case DType::kQ5_K:
      return {0, 2};  // scale and minimum
    case DType::kQ6_K:
      return {208, 1};
    default:
      return {0, 1};
  }
}

// An IEEE number is finite iff its exponent is not all ones.
constexpr std::uint32_t kF32Exponent = 0x7f800000u;
constexpr std::uint16_t kF16Exponent = 0x7c00u;
constexpr std::uint16_t kBF16Exponent = 0x7f80u;

template <class Bits>
Bits load(const std::byte* at) {
  Bits bits;
  std::memcpy(&bits, at, sizeof(bits));
  return bits;
}

// Whether any of `count` values, `stride_bytes` apart, has all bits of `exponent` set. Branch-free, so that
// the compiler turns the dense case into vector code.
template <class Bits>
bool any_nonfinite(const std::byte* values, std::int64_t count, std::int64_t stride_bytes, Bits exponent) {
  Bits found = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const Bits bits = load<Bits>(values + i * stride_bytes);
    found |= static_cast<Bits>((bits & exponent) == exponent);
  }
  return found != 0;
}

bool row_is_finite(const TensorView& tensor, const std::byte* row) {
  const std::int64_t length = tensor.row_length();
  switch (tensor.dtype) {
    case DType::kF32:
      return !any_nonfinite<std::uint32_t>(row, length, 4, kF32Exponent);
    case DType::kF16:
      return !any_nonfinite<std::uint16_t>(row, length, 2, kF16Exponent);
    case DType::kBF16:
      return !any_nonfinite<std::uint16_t>(row, length, 2, kBF16Exponent);
    default:
      break;
  }
  const DTypeInfo& format = info_of(tensor.dtype);
  const ScaleFields fields = scale_fields_of(tensor.dtype);
  const std::int64_t num_blocks = length / format.block_elements;
  bool finite = true;
  for (std::int32_t field = 0; field < fields.count; ++field) {
    finite = finite && !any_nonfinite<std::uint16_t>(row + fields.first_byte + 2 * field, num_blocks,
                                                     format.block_bytes, kF16Exponent);
  }
  return finite;
}

// The value at `at` as the file stores it, for the message.
float stored_value(DType dtype, const std::byte* at) {
  if (dtype == DType::kF32) return load<float>(at);
  const auto bits = load<std::uint16_t>(at);
  return dtype == DType::kBF16 ? bf16_to_float(bits) : half_to_float(bits);
}

bool is_finite(float value) { return value - value == 0.0f; }

// Requires: the row is not finite.
std::unexpected<Error> describe(const TensorView& tensor, std::int64_t row_index) {
  const DTypeInfo& format = info_of(tensor.dtype);
  const bool blocked = format.block_elements > 1;
  const ScaleFields fields = blocked ? scale_fields_of(tensor.dtype) : ScaleFields{0, 1};
  const std::byte* row = tensor.row(row_index);
  std::int64_t element = 0;
  float value = 0.0f;
  for (; element < tensor.row_length(); element += format.block_elements) {
    const std::byte* block = row + element / format.block_elements * format.block_bytes;
    const std::byte* first = block + fields.first_byte;
    value = stored_value(tensor.dtype, first);
    if (is_finite(value) && fields.count == 2) value = stored_value(tensor.dtype, first + 2);
    if (!is_finite(value)) break;
  }
  return make_error(
      ErrorKind::kBadFile,
      fmt::format("tensor {}: row {}, element {}: the {} is {}, weights must be finite",
                  printable(tensor.name), row_index, element, blocked ? "block scale" : "value", value));
}

}  // namespace

Status check_finite(const TensorView& tensor, std::int64_t row_begin, std::int64_t row_end) {
  for (std::int64_t row = row_begin; row < row_end; ++row) {
    if (!row_is_finite(tensor, tensor.row(row))) return describe(tensor, row);
  }
  return {};
}

Status check_finite(const TensorView& tensor) { return check_finite(tensor, 0, tensor.num_rows()); }

}  // namespace kvasir::io
