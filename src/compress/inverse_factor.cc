#include "compress/inverse_factor.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace kvasir::compress {
namespace {

constexpr std::int64_t kLanes = 8;
#pragma GCC diagnostic ignored "-Wpsabi"  // vectors never cross a call
using Lanes [[gnu::vector_size(8 * kLanes)]] = double;

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define KVASIR_FACTOR_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define KVASIR_FACTOR_CLONES
#endif

// In one order, whatever the machine's vectors.
KVASIR_FACTOR_CLONES double dot(const double* a, const double* b, std::int64_t count) {
  Lanes sums[2] = {};
  std::int64_t i = 0;
  for (; i + 2 * kLanes <= count; i += 2 * kLanes) {
    Lanes x[2], y[2];
    std::memcpy(x, a + i, sizeof x);
    std::memcpy(y, b + i, sizeof y);
    sums[0] += x[0] * y[0];
    sums[1] += x[1] * y[1];
  }
  double rest = 0.0;
  for (; i < count; ++i) rest += a[i] * b[i];
  const Lanes all = sums[0] + sums[1];
  return (((all[0] + all[1]) + (all[2] + all[3])) + ((all[4] + all[5]) + (all[6] + all[7]))) + rest;
}

KVASIR_FACTOR_CLONES void add_scaled(const double* x, double factor, std::int64_t count, double* out) {
  for (std::int64_t i = 0; i < count; ++i) out[i] += factor * x[i];
}

// h = r r^T with r upper triangular, in place. False: it is not positive definite.
bool factor_upper(std::vector<double>& h, std::int64_t n, ThreadPool& pool) {
  for (std::int64_t j = n; j-- > 0;) {
    double* const of_j = h.data() + j * n;
    const std::int64_t rest = n - j - 1;
    const double square = of_j[j] - dot(of_j + j + 1, of_j + j + 1, rest);
    if (!(square > 0.0) || !std::isfinite(square)) return false;
    const double diagonal = std::sqrt(square);
    of_j[j] = diagonal;
    constexpr std::int64_t kRowsOfFactorTask = 32;
    pool.parallel_for((j + kRowsOfFactorTask - 1) / kRowsOfFactorTask, [&](std::int64_t task) {
      for (std::int64_t i = task * kRowsOfFactorTask; i < std::min(j, (task + 1) * kRowsOfFactorTask); ++i) {
        double* const of_i = h.data() + i * n;
        of_i[j] = (of_i[j] - dot(of_i + j + 1, of_j + j + 1, rest)) / diagonal;
      }
    });
  }
  return true;
}

}  // namespace

std::optional<std::vector<double>> inverse_factor(std::vector<double> h, std::int64_t n, ThreadPool& pool) {
  if (!factor_upper(h, n, pool)) return std::nullopt;
  // The inverse of r, row by row from the last one on: row i is (e_i - the sum of r[i][k] row k) / r[i][i].
  std::vector<double> inverse(static_cast<std::size_t>(n * n));
  constexpr std::int64_t kColumnsOfFactorTask = 256;
  const std::int64_t num_tasks = (n + kColumnsOfFactorTask - 1) / kColumnsOfFactorTask;
  pool.parallel_for(num_tasks, [&](std::int64_t task) {
    const std::int64_t begin = task * kColumnsOfFactorTask, end = std::min(n, begin + kColumnsOfFactorTask);
    for (std::int64_t i = end; i-- > 0;) {
      double* const out = inverse.data() + i * n;
      const double* const of_i = h.data() + i * n;
      for (std::int64_t k = i + 1; k < end; ++k) {
        const std::int64_t from = std::max(k, begin);
        add_scaled(inverse.data() + k * n + from, -of_i[k], end - from, out + from);
      }
      if (i >= begin) out[i] += 1.0;
      const double scale = 1.0 / of_i[i];
      for (std::int64_t j = std::max(i, begin); j < end; ++j) out[j] *= scale;
    }
  });
  return inverse;
}

}  // namespace kvasir::compress
