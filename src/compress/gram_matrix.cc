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

GramMatrix::GramMatrix(std::int64_t width)
    : width_(width),
      gathered_(static_cast<std::size_t>((width + kPanel - 1) / kPanel * kPanel * kRowsAtOnce)),
      sums_(static_cast<std::size_t>(width * width)) {}

void GramMatrix::add(std::span<const float> rows, ThreadPool& pool) {
  const std::int64_t count = std::ssize(rows) / width_;
  for (std::int64_t row = 0; row < count; ++row) {
    const float* from = rows.data() + row * width_;
    for (std::int64_t column = 0; column < width_; column += kPanel) {
      const std::int64_t length = std::min(kPanel, width_ - column);
      std::memcpy(gathered_.data() + column * kRowsAtOnce + num_gathered_ * kPanel, from + column,
                  static_cast<std::size_t>(length) * sizeof(float));
    }
    if (++num_gathered_ == kRowsAtOnce) multiply(pool);
  }
  num_rows_ += count;
}

void GramMatrix::finish(ThreadPool& pool) {
  if (num_gathered_ > 0) multiply(pool);
}

void GramMatrix::multiply(ThreadPool& pool) {
  const std::int64_t num_panels = (width_ + kPanel - 1) / kPanel;
  pool.parallel_for(num_panels, [&](std::int64_t task) {
    // The first panels have the most products: they come first and last in turn, so that threads end together.
    const std::int64_t a = task % 2 == 0 ? task / 2 : num_panels - 1 - task / 2;
    float products[kPanel * kPanel];
    for (std::int64_t b = a; b < num_panels; ++b) {
      multiply_panels(gathered_.data() + a * kPanel * kRowsAtOnce, gathered_.data() + b * kPanel * kRowsAtOnce, num_gathered_, products);
      for (std::int64_t i = 0; i < std::min(kPanel, width_ - a * kPanel); ++i) {
        const std::int64_t at = a * kPanel + i;
        for (std::int64_t j = a == b ? i : 0; j < std::min(kPanel, width_ - b * kPanel); ++j) {
          sums_[static_cast<std::size_t>(at * width_ + b * kPanel + j)] += double{products[i * kPanel + j]};
        }
      }
    }
  });
  std::ranges::fill(gathered_, 0.0f);
  num_gathered_ = 0;
}

}  // namespace kvasir::compress
