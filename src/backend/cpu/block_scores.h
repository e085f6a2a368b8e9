// Attention score by block of KV, folded from the block sums that the attention kernel leaves behind.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backend/batch_input.h"
#include "backend/cpu/attention_plan.h"
#include "kv/cells/attention_scores.h"

namespace kvasir::backend {

// Layers that read the same cells add up. Per step, a kv::StepScores for every slice and layer group whose slice asks for it. Every unit of attention
// folds its own rows, on whatever worker it runs. One that has all rows of its slice, as when a sequence
// decodes, pools them over the query heads as well; the others are added up in their order, so that the
// scores do not depend on the number of workers. A slice with guesses has a StepScores for each of its rows.
//
// Thread safety: fold() may be called for different units at once, everything else by one thread.
class BlockScores {
 public:
  // The attention of a unit's rows: [chunks, rows] each, rows as tokens x query heads of the KV head.
  struct UnitRows {
    const float* max = nullptr;          // of the chunk
    const float* sum = nullptr;          // exp-sum of the chunk, relative to max
    const float* block_sums = nullptr;   // [chunks, rows, blocks of a chunk], relative to max
    const float* log_sum_exp = nullptr;  // [rows]: of all chunks
  };

  void begin_step(const BatchInput& batch);
  // Room for the units of one layer. `plan` and `slices` are those that the layer's attention runs by.
  void begin_layer(const AttentionPlan& plan, std::span<const BatchSequence> slices, std::int32_t group_size,
                   std::int32_t group, std::int32_t layer_in_group);
  // score_b = sum over rows of weight * exp(chunk max - log sum exp) * block sum (the identity behind
  // FlashAttention's partial sums, Dao et al. 2022). Requires: unit.score >= 0.
  void fold(const AttentionUnit& unit, const UnitRows& rows);
  void end_layer();

  // By layer group; of one row where the slice has guesses.
  std::span<const kv::StepScores> of_slice(std::int32_t slice, std::int32_t row) const {
    return scores_[static_cast<std::size_t>(slice)][static_cast<std::size_t>(row)];
  }

 private:
  // A KV head's cells of one slice.
  struct CellScores {
    float* sum = nullptr;       // [num_blocks]
    float* greatest = nullptr;  // likewise
    std::int64_t num_blocks = 0;
    std::int32_t* num_queries = nullptr;

    // Another layer that reads the same cells has scores here.
    bool is_known() const { return *num_queries > 0; }
    // Adds the attention that a query head of the group paid to the blocks from `first` on. `is_first`: nothing
    // was there before.
    void pool(bool is_first, const float* of_head, std::int64_t first, std::int64_t count) const;
  };
  CellScores cell_scores(std::int32_t slice, std::int32_t row, std::int32_t kv_head);
  // Adds the scores of one query head of a unit's token, `weight` times, to [blocks of the unit's chunks].
  void add_row(const AttentionUnit& unit, const UnitRows& rows, std::int64_t row, float weight,
               float* of_head) const;
  void fold_apart(const AttentionUnit& unit, const UnitRows& rows);
  static void begin_row(const BatchInput& batch, std::size_t slice, std::vector<kv::StepScores>& of_row);
  bool has_all_rows(const AttentionUnit& unit) const;
  void add_up(const ObservedSlice& observed, std::int32_t kv_head, bool is_known, const CellScores& cell);

  std::vector<std::vector<std::vector<kv::StepScores>>> scores_;  // per slice, row and group
  // The current layer.
  const AttentionPlan* plan_ = nullptr;
  std::span<const BatchSequence> slices_;
  std::int32_t group_size_ = 0;
  std::int32_t group_ = 0;
  std::int32_t layer_in_group_ = 0;
  std::vector<float> of_units_;             // per unit: [group_size, blocks of its chunks]
  std::vector<float> of_head_;              // blocks of one query head; kept for its memory
  std::vector<std::int32_t> num_kv_heads_;  // per group
};

}  // namespace kvasir::backend
