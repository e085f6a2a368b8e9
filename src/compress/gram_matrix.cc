#include "compress/gram_matrix.h"

#include <algorithm>
#include <cstring>

namespace kvasir::compress {
namespace {

constexpr std::int64_t kPanel = 16;
constexpr std::int64_t kRowsOfBlock = 8;  // of products that are kept in registers

#pragma GCC diagnostic ignored "-Wpsabi"  // vectors never cross a call
using Vector [[gnu::vector_size(4 * kPanel)]] = float;

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define KVASIR_GRAM_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define KVASIR_GRAM_CLONES
#endif

// out[i][j] = the sum over rows of a[row][i] b[row][j], for 16 x 16 products.
KVASIR_GRAM_CLONES void multiply_panels(const float* a, const float* b, std::int64_t num_rows, float* out) {
  for (std::int64_t first = 0; first < kPanel; first += kRowsOfBlock) {
    Vector sums[kRowsOfBlock] = {};
    for (std::int64_t row = 0; row < num_rows; ++row) {
      Vector right;
      std::memcpy(&right, b + row * kPanel, sizeof right);
      const float* left = a + row * kPanel + first;
      for (int i = 0; i < kRowsOfBlock; ++i) sums[i] += right * left[i];
    }
    std::memcpy(out + first * kPanel, sums, sizeof sums);
  }
}

}  // namespace

void GramMatrix::add(std::span<const float> rows, ThreadPool& pool) {
  thread_local std::vector<float> panels;
  const std::int64_t num_panels = (width_ + kPanel - 1) / kPanel, count = std::ssize(rows) / width_;
  panels.assign(static_cast<std::size_t>(num_panels * kPanel * kRowsAtOnce), 0.0f);
  for (std::int64_t begin = 0; begin < count; begin += kRowsAtOnce) {
    const std::int64_t num_rows = std::min(kRowsAtOnce, count - begin);
    for (std::int64_t row = 0; row < num_rows; ++row) {
      const float* from = rows.data() + (begin + row) * width_;
      for (std::int64_t column = 0; column < width_; column += kPanel) {
        const std::int64_t length = std::min(kPanel, width_ - column);
        std::memcpy(panels.data() + column * kRowsAtOnce + row * kPanel, from + column, static_cast<std::size_t>(length) * sizeof(float));
      }
    }
    multiply(panels, num_rows, pool);
  }
  num_rows_ += count;
}

void GramMatrix::multiply(const std::vector<float>& panels, std::int64_t num_rows, ThreadPool& pool) {
  const std::int64_t num_panels = (width_ + kPanel - 1) / kPanel;
  pool.parallel_for(num_panels, [&](std::int64_t task) {
    // The first panels have the most products: they come first and last in turn, so that threads end together.
    const std::int64_t a = task % 2 == 0 ? task / 2 : num_panels - 1 - task / 2;
    float products[kPanel * kPanel];
    for (std::int64_t b = a; b < num_panels; ++b) {
      multiply_panels(panels.data() + a * kPanel * kRowsAtOnce, panels.data() + b * kPanel * kRowsAtOnce, num_rows, products);
      for (std::int64_t i = 0; i < std::min(kPanel, width_ - a * kPanel); ++i) {
        double* const sums = sums_.data() + place(a * kPanel + i, b * kPanel + (a == b ? i : 0));
        for (std::int64_t j = a == b ? i : 0, k = 0; j < std::min(kPanel, width_ - b * kPanel); ++j, ++k) {
          sums[k] += double{products[i * kPanel + j]};
        }
      }
    }
  });
}

}  // namespace kvasir::compress
