// The factor of an inverse that error-correcting quantisation walks along.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/thread_pool.h"

namespace kvasir::compress {

// `h`: [n, n], symmetric and positive definite, of which the upper triangle is read. Gives U, upper triangular, with
// U^T U = h^-1 (Frantar et al. 2022 call it the Cholesky factor of the inverse). Nothing where h is not positive definite.
// In float64; the same bits for any number of threads.
std::optional<std::vector<double>> inverse_factor(std::vector<double> h, std::int64_t n, ThreadPool& pool);

}  // namespace kvasir::compress
