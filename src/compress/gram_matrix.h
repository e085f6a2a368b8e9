// Sums of products of the columns of rows: what inputs of a matrix have to do with each other.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"

namespace kvasir::compress {

// X^T X over all rows that were added. Rows are taken kRowsAtOnce at a time. Each column of these is rounded to 12 bits, its
// largest magnitude at 2047; so rounding adds at most 1e-5 of a column's mean square to it, far less than the damping of
// whoever inverts the sums. Products of integers are exact, and their sums are added in float64 in the order of the rows. So
// the bits are the same for any number of threads and on every machine. A column with a number that is none gives NaN.
//
// Thread safety: none.
class GramMatrix {
 public:
  static constexpr std::int64_t kRowsAtOnce = 512;

  explicit GramMatrix(std::int64_t width)
      : width_(width), sums_(static_cast<std::size_t>(width * (width + 1) / 2)) {}

  std::int64_t width() const { return width_; }
  std::int64_t num_rows() const { return num_rows_; }
  // `rows`: [n, width].
  void add(std::span<const float> rows, ThreadPool& pool);
  // As if column i of all rows had been divided by scales[i].
  void divide_columns(std::span<const float> scales);
  // The sum of products of columns i and j.
  double at(std::int64_t i, std::int64_t j) const { return sums_[static_cast<std::size_t>(i <= j ? place(i, j) : place(j, i))]; }

 private:
  // The upper triangle, row by row.
  std::int64_t place(std::int64_t i, std::int64_t j) const { return i * width_ - i * (i - 1) / 2 + j - i; }
  // `columns`: [width, kRowsAtOnce] integers, the width rounded up; `units`: what an integer of each column stands for.
  void multiply(const std::vector<std::int16_t>& columns, const std::vector<double>& units, ThreadPool& pool);

  std::int64_t width_;
  std::int64_t num_rows_ = 0;
  std::vector<double> sums_;
};

}  // namespace kvasir::compress
