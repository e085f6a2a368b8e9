// How much attention the cells of a sequence got in one step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace kvasir::kv {

// Which queries of a step count, and how much: the last one 1, each earlier one `decay` times the next.
struct QueryWeights {
  std::int32_t num_queries = 0;  // the last ones of the step; 0: not wanted
  float decay = 1.0f;
};
inline constexpr std::int32_t kAllQueries = std::numeric_limits<std::int32_t>::max();

// The scores of one sequence in one layer group. A query head shares out 1 over the blocks it sees; `sum`
// adds up the query heads of a KV head, `greatest` is the most that one of them gave.
struct StepScores {
  std::int32_t num_blocks = 0;
  std::vector<float> sum;                 // [cells, num_blocks]; empty: not wanted
  std::vector<float> greatest;            // likewise
  std::vector<std::int32_t> num_queries;  // [cells]: that counted

  bool is_empty() const { return sum.empty(); }
  std::span<const float> sum_of(std::int32_t cell) const { return row(sum, cell); }
  std::span<const float> greatest_of(std::int32_t cell) const { return row(greatest, cell); }

 private:
  std::span<const float> row(const std::vector<float>& values, std::int32_t cell) const {
    const auto width = static_cast<std::size_t>(num_blocks);
    return std::span(values).subspan(static_cast<std::size_t>(cell) * width, width);
  }
};

}  // namespace kvasir::kv
