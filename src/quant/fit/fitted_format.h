// Encoders that choose a block's scales and codes so that the squared error, weighted by the importance of each number, is
// small; and what other searches for codes need of a format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "quant/dtype.h"

namespace kvasir::quant {

// Of a run of numbers that share their scale: value = scale * level + offset.
struct SubGrid {
  float scale = 0.0f, offset = 0.0f;
};

// Pure functions of their arguments: the same bits on every machine and for any number of threads. Thread safety: any
// number of callers.
class FittedFormat {
 public:
  virtual ~FittedFormat() = default;

  // Writes blocks of `num_elements` numbers, a multiple of the format's block. `importance`: of each, at least 0, or null:
  // all count alike. Requires: finite numbers.
  virtual void fit(const float* x, const float* importance, std::int64_t num_elements, std::byte* row) const = 0;
};

// One whose codes stand for a number each, so that others may choose them.
class GridFormat : public FittedFormat {
 public:
  // Numbers that share a scale.
  virtual int sub_elements() const = 0;
  // What codes stand for, ascending; a code's index is its place here.
  virtual std::span<const float> levels() const = 0;

  // The scales of a row, one SubGrid for each sub_elements().
  virtual void read_grid(const std::byte* row, std::int64_t num_elements, SubGrid* grid) const = 0;
  // Replaces the codes of a row by those of these indices; its scales stay.
  virtual void put_codes(const std::uint8_t* indices, std::int64_t num_elements, std::byte* row) const = 0;
};

// Null for types that have no codes (F32, F16, BF16), and for those that are only read.
const FittedFormat* fitted_format(DType dtype);
// Null besides for those whose codes stand for several numbers together (IQ2, IQ3).
const GridFormat* grid_format(DType dtype);

}  // namespace kvasir::quant
