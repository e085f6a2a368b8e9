// Work on rows, cut into tasks for the workers.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/checked_math.h"
#include "base/thread_pool.h"
#include "kernels/table.h"

namespace kvasir::backend {

// Below this many floats an op is done by the caller alone: handing it over would cost more.
inline constexpr std::int64_t kInlineFloats = 8192;

// Whole tiles of quantised rows, or quarters of one, whose cache lines nobody else writes.
inline std::int32_t rows_of_task(int num_threads, std::int32_t num_rows, std::int64_t floats_per_row) {
  constexpr std::int32_t kTile = kernels::kTokensPerActivationTile;
  const std::int32_t granule = num_rows / kTile >= 2 * num_threads ? kTile : kTile / 4;
  const auto rows = static_cast<std::int32_t>(kInlineFloats / 4 / floats_per_row);
  return ceil_div(std::max(1, rows), granule) * granule;
}

// Calls fn(row, worker) for each row: alone when the whole op is small, in runs of rows otherwise.
template <class F>
void for_rows(ThreadPool& pool, std::int32_t num_rows, std::int64_t floats_per_row, const F& fn) {
  if (num_rows * floats_per_row <= kInlineFloats || pool.num_threads() == 1) {
    for (std::int32_t row = 0; row < num_rows; ++row) fn(row, 0);
    return;
  }
  const std::int32_t rows_per_task = rows_of_task(pool.num_threads(), num_rows, floats_per_row);
  pool.parallel_for(ceil_div(num_rows, rows_per_task), [&](std::int64_t task, int worker) {
    const auto begin = static_cast<std::int32_t>(task) * rows_per_task;
    const std::int32_t end = std::min(num_rows, begin + rows_per_task);
    for (std::int32_t row = begin; row < end; ++row) fn(row, worker);
  });
}

}  // namespace kvasir::backend
