#include "backend/cpu/block_scores.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "kernels/table.h"

namespace kvasir::backend {
namespace {

constexpr std::int64_t kBlocksPerChunk = kernels::kTokensPerChunk / kernels::kTokensPerCell;

}  // namespace

void BlockScores::begin_step(const BatchInput& batch) {
  // Never smaller: batches of different sizes may take turns.
  scores_.resize(std::max(scores_.size(), batch.sequences.size()));
  num_kv_heads_.clear();
  for (const KvGroupView& group : batch.kv_groups) num_kv_heads_.push_back(group.layout.num_kv_heads);
  for (std::size_t i = 0; i < batch.sequences.size(); ++i) {
    const auto num_rows = static_cast<std::size_t>(batch.sequences[i].num_reported_rows());
    scores_[i].resize(std::max(scores_[i].size(), num_rows));
    for (std::size_t row = 0; row < num_rows; ++row) begin_row(batch, i, scores_[i][row]);
  }
}

void BlockScores::begin_row(const BatchInput& batch, std::size_t slice, std::vector<kv::StepScores>& of_row) {
  of_row.resize(batch.kv_groups.size());
  for (std::size_t g = 0; g < batch.kv_groups.size(); ++g) {
    const KvGroupView& group = batch.kv_groups[g];
    kv::StepScores& score = of_row[g];
    const bool is_wanted = batch.sequences[slice].observed.num_queries > 0 && group.window == 0;
    score.num_blocks = is_wanted ? static_cast<std::int32_t>(group.blocks[slice].size()) : 0;
    const auto num_cells = static_cast<std::size_t>(is_wanted ? group.layout.cells_per_block() : 0);
    // Not cleared: what num_queries says is known is written whole.
    score.sum.resize(num_cells * static_cast<std::size_t>(score.num_blocks));
    score.greatest.resize(score.sum.size());
    score.num_queries.assign(num_cells, 0);
  }
}

void BlockScores::begin_layer(const AttentionPlan& plan, std::span<const BatchSequence> slices,
                            std::int32_t group_size, std::int32_t group, std::int32_t layer_in_group) {
  plan_ = &plan;
  slices_ = slices;
  group_size_ = group_size;
  group_ = group;
  layer_in_group_ = layer_in_group;
  of_units_.resize(std::max(of_units_.size(), static_cast<std::size_t>(plan.num_unit_scores)));
}

void BlockScores::fold(const AttentionUnit& unit, const UnitRows& rows) {
  const BatchSequence& slice = slices_[static_cast<std::size_t>(unit.sequence)];
  if (slice.num_draft_rows > 0) return fold_apart(unit, rows);
  const std::int64_t num_blocks = unit.num_chunks() * kBlocksPerChunk;
  float* scores = of_units_.data() + unit.score;
  std::fill_n(scores, group_size_ * num_blocks, 0.0f);
  const std::int32_t last = slice.first_row + slice.num_rows - 1;
  for (std::int32_t token = 0; token < unit.num_tokens; ++token) {
    const std::int32_t age = last - (unit.first_row + token);
    if (age >= slice.observed.num_queries) continue;
    const float weight = std::pow(slice.observed.decay, static_cast<float>(age));
    for (std::int32_t head = 0; head < group_size_; ++head) {
      add_row(unit, rows, std::int64_t{token} * group_size_ + head, weight, scores + head * num_blocks);
    }
  }
  if (!has_all_rows(unit)) return;
  const CellScores cell = cell_scores(unit.sequence, 0, unit.kv_head);
  for (std::int32_t head = 0; head < group_size_; ++head) {
    cell.pool(head == 0 && !cell.is_known(), scores + head * num_blocks, unit.chunk_begin * kBlocksPerChunk, num_blocks);
  }
}

void BlockScores::add_row(const AttentionUnit& unit, const UnitRows& rows, std::int64_t row, float weight,
                        float* of_head) const {
  const std::int64_t num_rows = std::int64_t{unit.num_tokens} * group_size_;
  for (std::int64_t chunk = 0; chunk < unit.num_chunks(); ++chunk, of_head += kBlocksPerChunk) {
    const std::int64_t at = chunk * num_rows + row;
    if (rows.max[at] == -std::numeric_limits<float>::infinity()) continue;
    const float factor = weight * std::exp(rows.max[at] - rows.log_sum_exp[row]);
    const float* block_sums = rows.block_sums + at * kBlocksPerChunk;
    for (std::int64_t b = 0; b < kBlocksPerChunk; ++b) {
      // Rounding may bring a share above 1.
      if (block_sums[b] > 0.0f) of_head[b] += std::min(weight, factor * block_sums[b]);
    }
  }
}

// A unit has all chunks of its rows, so each row's scores are complete, as if it had been a step of its own.
void BlockScores::fold_apart(const AttentionUnit& unit, const UnitRows& rows) {
  const BatchSequence& slice = slices_[static_cast<std::size_t>(unit.sequence)];
  const std::int64_t num_blocks = unit.num_chunks() * kBlocksPerChunk;
  float* of_head = of_units_.data() + unit.score;
  for (std::int32_t token = 0; token < unit.num_tokens; ++token) {
    const CellScores cell = cell_scores(unit.sequence, unit.first_row + token - slice.first_row, unit.kv_head);
    const bool is_known = cell.is_known();
    if (!is_known) {
      std::fill_n(cell.sum, cell.num_blocks, 0.0f);
      std::fill_n(cell.greatest, cell.num_blocks, 0.0f);
    }
    for (std::int32_t head = 0; head < group_size_; ++head, of_head += num_blocks) {
      std::fill_n(of_head, num_blocks, 0.0f);
      add_row(unit, rows, std::int64_t{token} * group_size_ + head, 1.0f, of_head);
      cell.pool(head == 0 && !is_known, of_head, unit.chunk_begin * kBlocksPerChunk, num_blocks);
    }
    *cell.num_queries = 1;
  }
}

bool BlockScores::has_all_rows(const AttentionUnit& unit) const {
  return unit.num_tokens == slices_[static_cast<std::size_t>(unit.sequence)].num_rows;
}

BlockScores::CellScores BlockScores::cell_scores(std::int32_t slice, std::int32_t row, std::int32_t kv_head) {
  std::vector<kv::StepScores>& of_row = scores_[static_cast<std::size_t>(slice)][static_cast<std::size_t>(row)];
  kv::StepScores& score = of_row[static_cast<std::size_t>(group_)];
  const std::int32_t num_heads = num_kv_heads_[static_cast<std::size_t>(group_)];
  const auto cell = static_cast<std::size_t>(layer_in_group_ * num_heads + kv_head);
  const auto width = static_cast<std::size_t>(score.num_blocks);
  return {.sum = score.sum.data() + cell * width,
          .greatest = score.greatest.data() + cell * width,
          .num_blocks = score.num_blocks,
          .num_queries = &score.num_queries[cell]};
}

void BlockScores::CellScores::pool(bool is_first, const float* of_head, std::int64_t first,
                                   std::int64_t count) const {
  float* to_sum = sum + first;
  float* to_greatest = greatest + first;
  const std::int64_t end = std::min(num_blocks - first, count);
  if (is_first) {
    std::copy_n(of_head, end, to_sum);
    std::copy_n(of_head, end, to_greatest);
    return;
  }
  for (std::int64_t b = 0; b < end; ++b) {
    to_sum[b] += of_head[b];
    to_greatest[b] = std::max(to_greatest[b], of_head[b]);
  }
}

void BlockScores::end_layer() {
  const std::int32_t num_heads = num_kv_heads_[static_cast<std::size_t>(group_)];
  for (const ObservedSlice& observed : plan_->observed) {
    const BatchSequence& slice = slices_[static_cast<std::size_t>(observed.sequence)];
    if (slice.num_draft_rows > 0) continue;  // fold() has told it all
    for (std::int32_t head = 0; head < num_heads; ++head) {
      const CellScores cell = cell_scores(observed.sequence, 0, head);
      const bool is_known = cell.is_known();
      *cell.num_queries = std::min(slice.observed.num_queries, slice.num_rows);
      add_up(observed, head, is_known, cell);
    }
  }
}

// Over the units of a slice and a KV head, query head by query head, as far as they have not been pooled.
void BlockScores::add_up(const ObservedSlice& observed, std::int32_t kv_head, bool is_known,
                         const CellScores& cell) {
  const auto units = std::span(plan_->units)
                         .subspan(static_cast<std::size_t>(observed.first_unit),
                                  static_cast<std::size_t>(observed.end_unit - observed.first_unit));
  if (std::ranges::all_of(units, [&](const AttentionUnit& unit) { return has_all_rows(unit); })) return;
  for (std::int32_t query_head = 0; query_head < group_size_; ++query_head) {
    of_head_.assign(static_cast<std::size_t>(cell.num_blocks), 0.0f);
    for (const AttentionUnit& unit : units) {
      if (unit.kv_head != kv_head || unit.score < 0) continue;
      const std::int64_t num_blocks = unit.num_chunks() * kBlocksPerChunk;
      const float* of_unit = of_units_.data() + unit.score + query_head * num_blocks;
      const std::int64_t first = unit.chunk_begin * kBlocksPerChunk;
      const std::int64_t end = std::min(cell.num_blocks, first + num_blocks);
      for (std::int64_t b = first; b < end; ++b) of_head_[static_cast<std::size_t>(b)] += of_unit[b - first];
    }
    cell.pool(query_head == 0 && !is_known, of_head_.data(), 0, cell.num_blocks);
  }
}

}  // namespace kvasir::backend
