// Sums of products of the columns of rows: what inputs of a matrix have to do with each other.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"

namespace kvasir::compress {

// X^T X over all rows that were added. Products of the rows of a call, up to kRowsAtOnce of them, are added in float32, their
// sums in float64, in the order of the rows, so the bits are the same for any number of threads and on every machine.
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
  // The sum of products of columns i and j.
  double at(std::int64_t i, std::int64_t j) const { return sums_[static_cast<std::size_t>(i <= j ? place(i, j) : place(j, i))]; }

 private:
  // The upper triangle, row by row.
  std::int64_t place(std::int64_t i, std::int64_t j) const { return i * width_ - i * (i - 1) / 2 + j - i; }
  // `panels`: of 16 columns, [panel, kRowsAtOnce, 16].
  void multiply(const std::vector<float>& panels, std::int64_t num_rows, ThreadPool& pool);

  std::int64_t width_;
  std::int64_t num_rows_ = 0;
  std::vector<double> sums_;
};

}  // namespace kvasir::compress
