// Rows of a weight, whether a file holds them as they are needed or they are computed from what it holds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "quant/dtype.h"

namespace kvasir::io {

// Borrows the bytes of a mapped file. Immutable; any thread may read.
class RowReader {
 public:
  virtual ~RowReader() = default;
  RowReader(const RowReader&) = delete;
  RowReader& operator=(const RowReader&) = delete;

  DType dtype() const { return dtype_; }
  std::int64_t num_rows() const { return num_rows_; }
  std::int64_t row_length() const { return row_length_; }
  std::int64_t row_bytes() const { return kvasir::row_bytes(dtype_, row_length_); }

  // Rows [begin, end) in the layout of dtype() into `out`. Requires: 0 <= begin <= end <= num_rows().
  virtual void read(std::int64_t begin, std::int64_t end, std::byte* out) const = 0;
  // All rows, where they lie one after the other in memory in that layout; else null.
  virtual const std::byte* stored() const { return nullptr; }
  // Tells the system that what these rows were made of is not needed again soon.
  virtual void release(std::int64_t begin, std::int64_t end) const = 0;

 protected:
  RowReader(DType dtype, std::int64_t num_rows, std::int64_t row_length)
      : dtype_(dtype), num_rows_(num_rows), row_length_(row_length) {}

 private:
  DType dtype_;
  std::int64_t num_rows_, row_length_;
};

using RowReaderPtr = std::unique_ptr<RowReader>;

// Rows as they lie in memory.
RowReaderPtr stored_rows(DType dtype, std::int64_t num_rows, std::int64_t row_length, const std::byte* data);
// One F32 row that the caller computed.
RowReaderPtr computed_row(std::vector<float> values);
// F32 rows of value(number), for numbers in any float type.
using FloatFunction = float (*)(float);
RowReaderPtr converted_rows(RowReaderPtr from, FloatFunction function);
// Rows begin, begin + step, ... of each run of `rows_per_matrix` rows, `count` of each run.
struct RowSelection {
  std::int64_t rows_per_matrix = 0;
  std::int64_t begin = 0, step = 1, count = 0;
};
RowReaderPtr selected_rows(RowReaderPtr from, RowSelection selection);
// Each [inputs, outputs] matrix of floats of `from`, which holds num_rows / inputs of them, as [outputs, inputs].
RowReaderPtr transposed_rows(RowReaderPtr from, std::int64_t inputs);
// Runs of `length` rows of `from`, each as one row. Requires: a type without blocks.
RowReaderPtr joined_rows(RowReaderPtr from, std::int64_t length);
// The rows of all parts, one part after the other. Requires: at least one; equal types and row lengths.
RowReaderPtr stacked_rows(std::vector<RowReaderPtr> parts);

}  // namespace kvasir::io
