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

// The numbers that rounding a matrix with these inputs needs, made once for all matrices that share them. H is the mean of
// products of inputs, damped: H = F D F^T with F upper triangular, its diagonal 1, and D diagonal. So the loss of errors e is
// the sum over columns c of D[c] (e[c] + the sum over k < c of e[k] F[k][c])^2, and column c corrects those before it best
// when it rounds its number plus that sum. These are the paper's codes; no inverse is needed (Chee et al. 2023).
struct InputGeometry {
  std::int64_t width = 0;
  std::vector<std::int32_t> order;    // columns, those with the greatest squares first
  std::vector<float> feedback;        // F: [width, width], in that order
  std::vector<double> diagonal;       // D, in that order
  std::vector<double> added;          // to the diagonal of the products, in that order
  std::vector<float> mean_squares;    // of inputs, by column
  double damping = 0.0;               // that was added to the diagonal, as a part of its mean
};

// Damping rises from 0.01 of the mean square to 0.1 where the products are not positive definite; nothing where that is not
// enough.
std::optional<InputGeometry> geometry_of(const GramMatrix& gram, ThreadPool& pool);

// Encodes rows of floats. Scales are those that the importance of inputs gives; codes are chosen column by column, and each
// error goes to the columns that are still open. A row keeps the nearest codes where they lose less. `out`: rows as the
// type has them. Gives tr(E H E^T) of all rows, E their errors, H without damping. Rows do not depend on each other.
struct GptqResult {
  double loss = 0.0;          // of what was written
  double nearest_loss = 0.0;  // of the nearest codes
};
GptqResult encode_rows_gptq(DType type, const InputGeometry& geometry, std::span<const float> rows, ThreadPool& pool,
                            std::span<std::byte> out);

}  // namespace kvasir::compress
