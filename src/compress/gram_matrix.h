// Sums of products of the columns of rows: what inputs of a matrix have to do with each other.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"

namespace kvasir::compress {

// X^T X over all rows that were added. Products of up to kRowsAtOnce rows are added in float32, their sums in float64, in
// the order of the rows, so the bits are the same for any number of threads and on every machine.
//
// Thread safety: none.
class GramMatrix {
 public:
  static constexpr std::int64_t kRowsAtOnce = 512;

  explicit GramMatrix(std::int64_t width);

  std::int64_t width() const { return width_; }
  std::int64_t num_rows() const { return num_rows_; }
  // `rows`: [n, width]. They are gathered until there are enough.
  void add(std::span<const float> rows, ThreadPool& pool);
  // Adds what was gathered. Before the members below.
  void finish(ThreadPool& pool);
  // Row i holds the products with columns j >= i, from place i on; the rest is 0.
  std::span<const double> row(std::int64_t i) const {
    return {sums_.data() + i * width_, static_cast<std::size_t>(width_)};
  }
  double diagonal(std::int64_t i) const { return sums_[static_cast<std::size_t>(i * width_ + i)]; }

 private:
  void multiply(ThreadPool& pool);

  std::int64_t width_;
  std::int64_t num_rows_ = 0;
  std::int64_t num_gathered_ = 0;
  std::vector<float> gathered_;  // panels of 16 columns: [panel, row, 16]
  std::vector<double> sums_;     // [width, width]
};

}  // namespace kvasir::compress
