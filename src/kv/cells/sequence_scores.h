// A policy's memory of a sequence's cells: how much attention they got, and how unusual their keys are.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kv/cells/attention_scores.h"

namespace kvasir::kv {

enum class HeadPooling : std::uint8_t { kSum, kGreatest };  // over the query heads of a KV head

// The statistic of a block's keys and values, measured once, when its last token is there.
enum class CellStatistic : std::uint8_t {
  kNone,
  kDistinctness,   // mean over its tokens of -cos(key, mean key so far) (KeyDiff, Park et al. 2025)
  kValueKeyRatio,  // mean over its tokens of |value| / |key| (PagedEviction, Chitty-Venkata et al. 2025)
};

// How a policy looks at attention: each later query weighs `decay` times as much in memory as the next. With
// a window only about the last so many queries count: the oldest leave as new ones come.
struct AttentionMemory {
  bool is_kept = false;
  float decay = 1.0f;
  std::int32_t window_queries = 0;  // 0: all
  HeadPooling pooling = HeadPooling::kSum;
  CellStatistic statistic = CellStatistic::kNone;

  QueryWeights weights() const {
    if (!is_kept) return {};
    return {.num_queries = window_queries > 0 ? window_queries : kAllQueries, .decay = decay};
  }
  // The rest of it after so many more queries.
  float kept_share(std::int32_t num_queries) const;
  // The weight of the last so many queries in it together, the last one being 1. Requires: it has no window.
  float weight_of(std::int32_t num_queries) const;
  bool operator==(const AttentionMemory&) const = default;
};

// The scores of one sequence in one layer group, by cell and logical block: eight bytes each.
//
// Thread safety: none; the engine thread is the only caller.
class SequenceScores {
 public:
  SequenceScores() = default;
  SequenceScores(const AttentionMemory& memory, std::int32_t num_cells, std::int32_t head_dim,
                 std::int32_t expected_blocks);
  // One that remembers just this, [num_cells, num_blocks] each as scores() and statistics() gave them: for what only looks at it.
  SequenceScores(const AttentionMemory& memory, std::int32_t num_cells, std::vector<float> scores, std::vector<float> statistics);

  // The same in rows of `num_blocks`, or of as many as there are.
  SequenceScores with_room_for(std::int32_t num_blocks) const;

  const AttentionMemory& memory() const { return memory_; }
  std::int32_t num_cells() const { return num_cells_; }
  std::int32_t num_blocks() const { return num_blocks_; }

  // Takes in a step's attention. A cell's earlier attention fades with each query that it got.
  void add(const StepScores& step);
  // Blocks of which every cell has its statistic: those after them are to be measured next, in order.
  std::int32_t num_measured_blocks() const { return num_measured_blocks_; }
  // Sets the measures of a block that is now full: the statistic, of which 15 bits are kept, and the greatest
  // length of its values, kept to a twelfth.
  void set_statistic(std::int32_t cell, std::int32_t block, float value, float longest_value = 0.0f);
  // [num_cells, head_dim]: the sums of unit keys so far, for the kernel that measures distinctness; empty
  // where another statistic or none is wanted.
  std::span<float> key_sums() { return key_sums_; }
  // The share of the remembered attention that is lost: that of blocks that are gone.
  float lost_share(std::int32_t cell) const;
  // The block is gone: what it had stays as what was lost, below 0.
  void freeze(std::int32_t cell, std::int32_t block);

  // Remembered attention by block, [num_blocks]; of a frozen block, the negative of what it had.
  std::span<const float> scores(std::int32_t cell) const { return row(scores_, cell); }
  std::span<const float> statistics(std::int32_t cell) const { return row(statistics_, cell); }
  // The logarithm of the greatest length of the block's values: 8 for each doubling.
  static std::uint8_t value_magnitude(float statistic) {
    return static_cast<std::uint8_t>(std::bit_cast<std::uint32_t>(statistic) & kMagnitudeMask);
  }
  // Bytes per cell and block: what the budget counts beside the cells themselves.
  static constexpr std::int64_t kBytesPerCell = 2 * sizeof(float);

 private:
  // The magnitude lies in the last bits of the statistic, so that a cell takes no more than its budget says.
  static constexpr std::uint32_t kMagnitudeMask = 0xff;
  void reserve(std::int32_t num_blocks);
  std::size_t index(std::int32_t cell, std::int32_t block) const {
    return static_cast<std::size_t>(cell) * static_cast<std::size_t>(capacity_) +
           static_cast<std::size_t>(block);
  }
  std::span<const float> row(const std::vector<float>& values, std::int32_t cell) const {
    return std::span(values).subspan(index(cell, 0), static_cast<std::size_t>(num_blocks_));
  }

  AttentionMemory memory_;
  std::int32_t num_cells_ = 0;
  std::int32_t num_blocks_ = 0;
  std::int32_t num_measured_blocks_ = 0;
  std::int32_t capacity_ = 0;      // blocks that a row has room for
  std::vector<float> scores_;      // [num_cells, capacity]
  std::vector<float> statistics_;  // likewise
  std::vector<float> key_sums_;    // [num_cells, head_dim]
};

}  // namespace kvasir::kv
