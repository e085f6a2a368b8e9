#include "compress/gram_matrix.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kvasir::compress {
namespace {

constexpr std::int64_t kTile = 4;        // columns whose products with as many others are kept in registers
constexpr std::int64_t kColumnsOfTask = 16;
constexpr std::int64_t kGramRows = GramMatrix::kRowsAtOnce;
constexpr float kMostInteger = 2047.0f;  // 512 of its squares are below 2^31

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define KVASIR_GRAM_CLONES __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define KVASIR_GRAM_CLONES
#endif

// Products of four columns with four. Sums of products of two neighbours are one instruction, which the compiler finds.
KVASIR_GRAM_CLONES void multiply_columns(const std::int16_t* a, const std::int16_t* b, std::int32_t* out) {
  std::int32_t sums[kTile][kTile] = {};
  const std::int16_t *a0 = a, *a1 = a + kGramRows, *a2 = a + 2 * kGramRows, *a3 = a + 3 * kGramRows;
  const std::int16_t *b0 = b, *b1 = b + kGramRows, *b2 = b + 2 * kGramRows, *b3 = b + 3 * kGramRows;
  for (std::int64_t row = 0; row < kGramRows; ++row) {
    sums[0][0] += a0[row] * b0[row], sums[0][1] += a0[row] * b1[row], sums[0][2] += a0[row] * b2[row], sums[0][3] += a0[row] * b3[row];
    sums[1][0] += a1[row] * b0[row], sums[1][1] += a1[row] * b1[row], sums[1][2] += a1[row] * b2[row], sums[1][3] += a1[row] * b3[row];
    sums[2][0] += a2[row] * b0[row], sums[2][1] += a2[row] * b1[row], sums[2][2] += a2[row] * b2[row], sums[2][3] += a2[row] * b3[row];
    sums[3][0] += a3[row] * b0[row], sums[3][1] += a3[row] * b1[row], sums[3][2] += a3[row] * b2[row], sums[3][3] += a3[row] * b3[row];
  }
  std::copy_n(&sums[0][0], kTile * kTile, out);
}

// Up to kColumnsOfTask neighbouring columns as integers, each row of them one behind the other, and their units.
void round_columns(const float* rows, std::int64_t stride, std::int64_t num_rows, std::int64_t num_columns, std::int16_t* columns,
                   double* units) {
  float largest[kColumnsOfTask] = {}, scales[kColumnsOfTask] = {};
  bool is_finite[kColumnsOfTask];
  std::fill_n(is_finite, kColumnsOfTask, true);
  for (std::int64_t row = 0; row < num_rows; ++row) {
    for (std::int64_t c = 0; c < num_columns; ++c) {
      const float magnitude = std::fabs(rows[row * stride + c]);
      is_finite[c] = is_finite[c] && magnitude <= std::numeric_limits<float>::max();
      largest[c] = std::max(largest[c], magnitude);
    }
  }
  for (std::int64_t c = 0; c < num_columns; ++c) {
    const bool is_seen = is_finite[c] && largest[c] > 1e-30f;
    scales[c] = is_seen ? kMostInteger / largest[c] : 0.0f;
    units[c] = is_finite[c] ? double{largest[c]} / kMostInteger : std::numeric_limits<double>::quiet_NaN();
  }
  constexpr float kShift = 12582912.0f;  // 1.5 * 2^23: no fraction is left beside it
  for (std::int64_t c = 0; c < num_columns; ++c) {
    std::int16_t* const column = columns + c * kGramRows;
    for (std::int64_t row = 0; row < num_rows; ++row) {
      column[row] = scales[c] > 0.0f ? static_cast<std::int16_t>(rows[row * stride + c] * scales[c] + kShift - kShift) : std::int16_t{0};
    }
    std::fill(column + num_rows, column + kGramRows, std::int16_t{0});
  }
}

}  // namespace

void GramMatrix::add(std::span<const float> rows, ThreadPool& pool) {
  const std::int64_t count = std::ssize(rows) / width_, num_tasks = (width_ + kColumnsOfTask - 1) / kColumnsOfTask;
  std::vector<std::int16_t> columns(static_cast<std::size_t>(num_tasks * kColumnsOfTask * kGramRows));
  std::vector<double> units(static_cast<std::size_t>(num_tasks * kColumnsOfTask));
  for (std::int64_t begin = 0; begin < count; begin += kGramRows) {
    const std::int64_t num_rows = std::min(kGramRows, count - begin);
    pool.parallel_for(num_tasks, [&](std::int64_t task) {
      const std::int64_t first = task * kColumnsOfTask;
      round_columns(rows.data() + begin * width_ + first, width_, num_rows, std::min(kColumnsOfTask, width_ - first),
                    columns.data() + first * kGramRows, units.data() + first);
    });
    multiply(columns, units, pool);
  }
  num_rows_ += count;
}

void GramMatrix::divide_columns(std::span<const float> scales) {
  std::size_t at = 0;
  for (std::int64_t i = 0; i < width_; ++i) {
    for (std::int64_t j = i; j < width_; ++j) sums_[at++] /= double{scales[static_cast<std::size_t>(i)]} * scales[static_cast<std::size_t>(j)];
  }
}

void GramMatrix::multiply(const std::vector<std::int16_t>& columns, const std::vector<double>& units, ThreadPool& pool) {
  const std::int64_t num_tiles = (width_ + kTile - 1) / kTile;
  pool.parallel_for(num_tiles, [&](std::int64_t task) {
    // The first tiles have the most products: they come first and last in turn, so that threads end together.
    const std::int64_t a = task % 2 == 0 ? task / 2 : num_tiles - 1 - task / 2;
    std::int32_t products[kTile * kTile];
    for (std::int64_t b = a; b < num_tiles; ++b) {
      multiply_columns(columns.data() + a * kTile * kGramRows, columns.data() + b * kTile * kGramRows, products);
      for (std::int64_t i = a * kTile; i < std::min(width_, (a + 1) * kTile); ++i) {
        for (std::int64_t j = std::max(i, b * kTile); j < std::min(width_, (b + 1) * kTile); ++j) {
          const double unit = units[static_cast<std::size_t>(i)] * units[static_cast<std::size_t>(j)];
          sums_[static_cast<std::size_t>(place(i, j))] += unit * products[(i - a * kTile) * kTile + j - b * kTile];
        }
      }
    }
  });
}

}  // namespace kvasir::compress
