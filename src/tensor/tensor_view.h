// A borrowed tensor: a type, a shape and where its bytes are.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "quant/dtype.h"

namespace kvasir {

// Does not own its bytes; valid as long as the WeightSource that handed it out.
// Invariant (kept by whoever makes one): data spans num_rows() * row_bytes(dtype, row_length()) bytes,
// and row_length() is a multiple of the dtype's block.
struct TensorView {
  std::string name;
  DType dtype = DType::kF32;
  std::int32_t rank = 0;
  std::array<std::int64_t, 4> shape{1, 1, 1, 1};  // shape[0] varies fastest, as in GGUF
  const std::byte* data = nullptr;

  std::int64_t row_length() const { return shape[0]; }                      // K: inputs of a weight matrix
  std::int64_t num_rows() const { return shape[1] * shape[2] * shape[3]; }  // M: outputs of a weight matrix
  std::int64_t num_elements() const { return row_length() * num_rows(); }
  std::int64_t num_bytes() const { return num_rows() * row_bytes(dtype, row_length()); }
  const std::byte* row(std::int64_t index) const { return data + index * row_bytes(dtype, row_length()); }
  // Rows [begin, end) as a tensor of their own.
  TensorView rows(std::int64_t begin, std::int64_t end) const {
    return {.name = name,
            .dtype = dtype,
            .rank = 2,
            .shape = {row_length(), end - begin, 1, 1},
            .data = row(begin)};
  }
};

}  // namespace kvasir
