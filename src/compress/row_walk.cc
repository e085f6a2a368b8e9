#include "compress/row_walk.h"

#include <algorithm>
#include <cstring>

namespace kvasir::compress {
namespace {

#pragma GCC diagnostic ignored "-Wpsabi"  // vectors never cross a call: what takes them is inlined
using RowVector [[gnu::vector_size(4 * kRowLanes)]] = float;

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define KVASIR_WALK_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define KVASIR_WALK_CLONES
#endif
#define KVASIR_WALK_INLINE [[gnu::always_inline]] inline

KVASIR_WALK_INLINE RowVector row_vector(const float* from) {
  RowVector vector;
  std::memcpy(&vector, from, sizeof vector);
  return vector;
}

KVASIR_WALK_INLINE void put(const RowVector& vector, float* to) { std::memcpy(to, &vector, sizeof vector); }

// The nearest levels of column c to numbers that are `correction` off: the errors of what they stand for.
KVASIR_WALK_INLINE RowVector round_column(const RowRounding& rounding, std::int64_t c, const RowVector& correction) {
  const RowVector zero{}, x = row_vector(rounding.x + c * kRowLanes);
  const RowVector scale = row_vector(rounding.scales[c]), offset = row_vector(rounding.offsets[c]);
  const RowVector wanted = scale != zero ? (x + correction - offset) / (scale != zero ? scale : zero + 1.0f) : zero;
  const std::size_t count = rounding.levels.size();
  RowVector index = zero, level = zero + rounding.levels.front();
  if (rounding.is_uniform) {
    const RowVector most = zero + static_cast<float>(count - 1);
    index = wanted - level;
    index = index > zero ? index : zero;
    index = index < most ? index : most;
    constexpr float kShift = 12582912.0f;  // 1.5 * 2^23: no fraction is left beside it
    index = index + kShift - kShift;
    level = level + index;
  } else {
    for (std::size_t i = 0; i + 1 < count; ++i) {
      const RowVector middle = zero + 0.5f * (rounding.levels[i] + rounding.levels[i + 1]);
      index = wanted > middle ? zero + static_cast<float>(i + 1) : index;
      level = wanted > middle ? zero + rounding.levels[i + 1] : level;
    }
  }
  put(index, rounding.indices + c * kRowLanes);
  return x - (scale * level + offset);
}

}  // namespace

KVASIR_WALK_CLONES void walk_block(const ColumnFactors& factors, std::int64_t num_columns, const RowRounding* rounding,
                                   float* corrections, float* errors, double* losses) {
  for (std::int64_t c = 0; c < num_columns; ++c) {
    const RowVector correction = row_vector(corrections + c * kRowLanes);
    RowVector error = row_vector(errors + c * kRowLanes);
    if (rounding != nullptr) {
      error = round_column(*rounding, c, correction);
      put(error, errors + c * kRowLanes);
    }
    const RowVector off = error + correction;
    for (std::int64_t row = 0; row < kRowLanes; ++row) {
      losses[row] += factors.diagonal[c] * double{off[row]} * off[row] - factors.added[c] * double{error[row]} * error[row];
    }
    const float* const feedback = factors.feedback + c * factors.stride;
    for (std::int64_t open = c + 1; open < num_columns; ++open) {
      put(row_vector(corrections + open * kRowLanes) + error * feedback[open], corrections + open * kRowLanes);
    }
  }
}

KVASIR_WALK_CLONES void spread_errors(const ColumnFactors& factors, std::int64_t num_columns, const float* errors, std::int64_t first_open,
                                      std::int64_t num_open, float* corrections) {
  constexpr std::int64_t kColumnsInRegisters = 8;
  std::int64_t open = 0;
  for (; open + kColumnsInRegisters <= num_open; open += kColumnsInRegisters) {
    RowVector sums[kColumnsInRegisters];
    std::memcpy(sums, corrections + open * kRowLanes, sizeof sums);
    const float* feedback = factors.feedback + first_open + open;
    for (std::int64_t c = 0; c < num_columns; ++c, feedback += factors.stride) {
      const RowVector error = row_vector(errors + c * kRowLanes);
      for (std::int64_t i = 0; i < kColumnsInRegisters; ++i) sums[i] += error * feedback[i];
    }
    std::memcpy(corrections + open * kRowLanes, sums, sizeof sums);
  }
  for (; open < num_open; ++open) {
    RowVector sum = row_vector(corrections + open * kRowLanes);
    for (std::int64_t c = 0; c < num_columns; ++c) {
      sum += row_vector(errors + c * kRowLanes) * factors.feedback[c * factors.stride + first_open + open];
    }
    put(sum, corrections + open * kRowLanes);
  }
}

}  // namespace kvasir::compress
