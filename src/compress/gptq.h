// Codes whose errors correct each other: GPTQ (Frantar et al. 2022) onto the grids of block formats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "compress/gram_matrix.h"
#include "quant/dtype.h"

namespace kvasir::compress {

// What rounding the rows of a matrix with these inputs needs, made once for all matrices that share them.
struct InputGeometry {
  std::int64_t width = 0;
  std::vector<std::int32_t> order;    // columns, those with the greatest squares first
  std::vector<float> factor;          // [width, width], upper triangular, in that order: U with U^T U = H^-1
  std::vector<float> mean_squares;    // of inputs, by column
  std::vector<float> products;        // [width, width], symmetric: H as a mean over rows, without damping
  double damping = 0.0;               // that was added to the diagonal, as a part of its mean
};

// Damping rises from 0.01 of the mean square to 0.1 where the products have no inverse; nothing where that is not enough.
std::optional<InputGeometry> geometry_of(const GramMatrix& gram, ThreadPool& pool);

// Encodes rows of floats. Scales are those that the importance of inputs gives; codes are chosen column by column, and each
// error goes to the columns that are still open. A row keeps the nearest codes where they lose less. `out`: rows as the
// type has them. Gives tr(E H E^T) of all rows, E their errors. Rows do not depend on each other.
struct GptqResult {
  double loss = 0.0;          // of what was written
  double nearest_loss = 0.0;  // of the nearest codes
};
GptqResult encode_rows_gptq(DType type, const InputGeometry& geometry, std::span<const float> rows, ThreadPool& pool,
                            std::span<std::byte> out);

}  // namespace kvasir::compress
