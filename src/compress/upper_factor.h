// The factor of a matrix that error-correcting quantisation walks along.
#pragma once

#include <cstdint>
#include <vector>

#include "base/thread_pool.h"

namespace kvasir::compress {

// `h`: [n, n], symmetric and positive definite, of which the upper triangle is read. Becomes r, upper triangular, with
// r r^T = h; what is below the diagonal means nothing then. False where h is not positive definite. In float64; the same bits
// for any number of threads and on every machine.
bool factor_upper(std::vector<double>& h, std::int64_t n, ThreadPool& pool);

}  // namespace kvasir::compress
