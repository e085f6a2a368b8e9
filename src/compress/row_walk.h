// Walks along the columns of a few rows and rounds them. A row is a lane of vectors, so its numbers do not depend on the
// rows beside it.
#pragma once

#include <cstdint>
#include <span>

namespace kvasir::compress {

inline constexpr std::int64_t kRowLanes = 16;
inline constexpr std::int64_t kColumnsOfBlock = 32;  // whose errors reach those behind them together

// The grid that numbers are rounded to. Pointers into [columns, kRowLanes], and of `scales` and `offsets` one for each column.
struct RowRounding {
  std::span<const float> levels;  // ascending
  bool is_uniform = false;        // each is 1 above the one before it
  const float* const* scales = nullptr;
  const float* const* offsets = nullptr;
  const float* x = nullptr;       // the numbers
  float* indices = nullptr;       // the levels that they get
};

// H = F D F^T beside a block of columns, and what was added to its diagonal (InputGeometry).
struct ColumnFactors {
  const float* feedback = nullptr;  // the row and column of the first one
  std::int64_t stride = 0;
  const double* diagonal = nullptr;
  const double* added = nullptr;
};

// At most kColumnsOfBlock columns. `corrections`: [columns, kRowLanes], what the columns before the block ask for; becomes
// what all before a column ask for. `rounding`: writes the errors that it makes; null: the errors are known. Adds to `losses`,
// [kRowLanes], what the columns lose.
void walk_block(const ColumnFactors& factors, std::int64_t num_columns, const RowRounding* rounding, float* corrections, float* errors,
                double* losses);

// Asks the `num_open` columns from `first_open` on (of factors.feedback, as `corrections` has them) for what the errors of a
// block need.
void spread_errors(const ColumnFactors& factors, std::int64_t num_columns, const float* errors, std::int64_t first_open,
                   std::int64_t num_open, float* corrections);

}  // namespace kvasir::compress
