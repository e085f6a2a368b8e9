#include "compress/upper_factor.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace kvasir::compress {
namespace {

constexpr std::int64_t kFactorBlock = 16;  // columns that are finished together
constexpr std::int64_t kRowsOfFactorTask = 16;
constexpr std::int64_t kDoubles = 8;
#pragma GCC diagnostic ignored "-Wpsabi"  // vectors never cross a call
using Doubles [[gnu::vector_size(8 * kDoubles)]] = double;

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define KVASIR_FACTOR_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define KVASIR_FACTOR_CLONES
#endif

// out[k] -= the sum of products of a and row k of b, for four rows, in one order whatever the machine's vectors.
KVASIR_FACTOR_CLONES void subtract_products(const double* a, const double* b, std::int64_t stride, std::int64_t count, double* out) {
  Doubles sums[4] = {};
  std::int64_t i = 0;
  for (; i + kDoubles <= count; i += kDoubles) {
    Doubles left;
    std::memcpy(&left, a + i, sizeof left);
    for (int k = 0; k < 4; ++k) {
      Doubles right;
      std::memcpy(&right, b + k * stride + i, sizeof right);
      sums[k] += left * right;
    }
  }
  for (int k = 0; k < 4; ++k) {
    const Doubles& all = sums[k];
    double sum = ((all[0] + all[1]) + (all[2] + all[3])) + ((all[4] + all[5]) + (all[6] + all[7]));
    for (std::int64_t at = i; at < count; ++at) sum += a[at] * b[k * stride + at];
    out[k] -= sum;
  }
}

// Finishes the columns from `begin` to `end` of row i. Those behind `end` are finished in all rows, and so are the rows of the
// block behind i. False: the diagonal has no root.
bool finish_row(double* h, std::int64_t n, std::int64_t i, std::int64_t begin, std::int64_t end) {
  double* const of_i = h + i * n;
  for (std::int64_t j = begin; j < end; j += 4) {
    if (end - j >= 4) {
      subtract_products(of_i + end, h + j * n + end, n, n - end, of_i + j);
    } else {
      for (std::int64_t k = j; k < end; ++k) {
        for (std::int64_t at = end; at < n; ++at) of_i[k] -= of_i[at] * h[k * n + at];
      }
    }
  }
  for (std::int64_t j = end; j-- > std::max(i, begin);) {
    const double* const of_j = h + j * n;
    double rest = of_i[j];
    for (std::int64_t k = j + 1; k < end; ++k) rest -= of_i[k] * of_j[k];
    if (j > i) {
      of_i[j] = rest / of_j[j];
    } else {
      if (!(rest > 0.0) || !std::isfinite(rest)) return false;
      of_i[j] = std::sqrt(rest);
    }
  }
  return true;
}

}  // namespace

bool factor_upper(std::vector<double>& h, std::int64_t n, ThreadPool& pool) {
  for (std::int64_t end = n; end > 0; end = std::max<std::int64_t>(0, end - kFactorBlock)) {
    const std::int64_t begin = std::max<std::int64_t>(0, end - kFactorBlock);
    for (std::int64_t i = end; i-- > begin;) {
      if (!finish_row(h.data(), n, i, begin, end)) return false;
    }
    pool.parallel_for((begin + kRowsOfFactorTask - 1) / kRowsOfFactorTask, [&](std::int64_t task) {
      const std::int64_t last = std::min(begin, (task + 1) * kRowsOfFactorTask);
      for (std::int64_t i = task * kRowsOfFactorTask; i < last; ++i) finish_row(h.data(), n, i, begin, end);
    });
  }
  return true;
}

}  // namespace kvasir::compress
