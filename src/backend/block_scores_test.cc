// Attention score by block, folded from partial sums, is that of dense attention.
#include "backend/cpu/block_scores.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/attention_problem.h"
#include "kernels/table.h"

namespace kvasir::backend::block_scores_test {
namespace {

using kernels::AttentionProblem;
using kernels::kTokensPerCell;
using kernels::kTokensPerChunk;

constexpr std::int32_t kBlocksPerChunk = kTokensPerChunk / kTokensPerCell;

// The tokens of one sequence in one step, with one KV head.
class OneSlice {
 public:
  OneSlice(const kernels::AttentionShape& shape, const kv::QueryWeights& observed)
      : shape_(shape), problem_(shape), blocks_(static_cast<std::size_t>(problem_.num_blocks())) {
    group_.layout = {.num_layers = 1, .num_kv_heads = 1, .head_dim = shape.head_dim};
    group_.window = shape.window;
    group_.blocks = {blocks_};
    slice_ = {.num_rows = shape.num_query_tokens,
              .first_position = problem_.first_position(),
              .observed = observed};
  }

  // The rows are guesses: reported one by one.
  void keep_rows_apart() { slice_.num_draft_rows = shape_.num_query_tokens - 1; }

  // As CpuBackend runs it. `row`: of one that is reported. `num_layers`: that read the same cells.
  kv::StepScores run(std::int32_t row = 0, int num_layers = 1) {
    const BatchInput batch{.sequences = {&slice_, 1}, .kv_groups = {&group_, 1}};
    AttentionPlan plan;
    plan_attention(batch.sequences, group_, shape_.group_size, plan);
    BlockScores score;
    score.begin_step(batch);
    for (int layer = 0; layer < num_layers; ++layer) {
      score.begin_layer(plan, batch.sequences, shape_.group_size, 0, 0);
      for (const AttentionUnit& unit : plan.units) {
        if (unit.score >= 0) attend(unit, score);
      }
      score.end_layer();
    }
    return score.of_slice(0, row)[0];
  }

  // The scores of one query head, from dense attention.
  std::vector<double> dense(std::int32_t head) const {
    const kernels::AttentionOutput output = problem_.dense();
    std::vector<double> scores(static_cast<std::size_t>(problem_.num_blocks()));
    for (std::int32_t token = 0; token < shape_.num_query_tokens; ++token) {
      const std::int32_t age = shape_.num_query_tokens - 1 - token;
      if (age >= slice_.observed.num_queries) continue;
      const auto row = static_cast<std::size_t>(token * shape_.group_size + head);
      for (std::size_t b = 0; b < scores.size(); ++b) {
        scores[b] += std::pow(slice_.observed.decay, age) * output.scores[row * scores.size() + b];
      }
    }
    return scores;
  }

  // The dense scores of one query token, over all query heads.
  std::vector<double> dense_row(std::int32_t token) const {
    const kernels::AttentionOutput output = problem_.dense();
    std::vector<double> scores(static_cast<std::size_t>(problem_.num_blocks()));
    for (std::int32_t head = 0; head < shape_.group_size; ++head) {
      const auto row = static_cast<std::size_t>(token * shape_.group_size + head);
      for (std::size_t b = 0; b < scores.size(); ++b) scores[b] += output.scores[row * scores.size() + b];
    }
    return scores;
  }

  const kernels::AttentionShape& shape() const { return shape_; }

 private:
  void attend(const AttentionUnit& unit, BlockScores& score) {
    const kernels::KernelTable& table = kernels::best_table();
    const auto rows = static_cast<std::size_t>(unit.num_tokens * shape_.group_size);
    const std::size_t all = rows * static_cast<std::size_t>(unit.num_chunks());
    const auto head_dim = static_cast<std::size_t>(shape_.head_dim);
    std::vector<float> out(all * head_dim), max(all), sum(all), block_sums(all * kBlocksPerChunk);
    std::vector<float> merged(rows * head_dim), log_sum_exp(rows);
    for (std::int32_t chunk = unit.chunk_begin; chunk < unit.chunk_end; ++chunk) {
      kernels::AttentionArgs args = problem_.chunk_args(chunk, unit.first_row, unit.num_tokens);
      const std::size_t first = static_cast<std::size_t>(chunk - unit.chunk_begin) * rows;
      args.out = out.data() + first * head_dim;
      args.max = max.data() + first;
      args.sum = sum.data() + first;
      args.block_sums = block_sums.data() + first * kBlocksPerChunk;
      table.attention(args);
    }
    table.attention_merge({.partial_out = out.data(),
                           .partial_max = max.data(),
                           .partial_sum = sum.data(),
                           .num_chunks = unit.num_chunks(),
                           .num_rows = static_cast<std::int32_t>(rows),
                           .group_size = shape_.group_size,
                           .head_dim = shape_.head_dim,
                           .out = merged.data(),
                           .out_stride = static_cast<std::int64_t>(shape_.group_size) * shape_.head_dim,
                           .log_sum_exp = log_sum_exp.data()});
    score.fold(unit, {.max = max.data(),
                     .sum = sum.data(),
                     .block_sums = block_sums.data(),
                     .log_sum_exp = log_sum_exp.data()});
  }

  const kernels::AttentionShape shape_;
  const AttentionProblem problem_;
  std::vector<BlockId> blocks_;
  KvGroupView group_;
  BatchSequence slice_;
};

void expect_dense(OneSlice& slice) {
  const kv::StepScores score = slice.run();
  std::vector<double> sum, greatest;
  for (std::int32_t head = 0; head < slice.shape().group_size; ++head) {
    const std::vector<double> of_head = slice.dense(head);
    sum.resize(of_head.size());
    greatest.resize(of_head.size());
    for (std::size_t b = 0; b < of_head.size(); ++b) {
      sum[b] += of_head[b];
      greatest[b] = std::max(greatest[b], of_head[b]);
    }
  }
  ASSERT_EQ(score.sum.size(), sum.size());
  for (std::size_t b = 0; b < sum.size(); ++b) {
    EXPECT_NEAR(score.sum[b], sum[b], 1e-5 * std::max(1.0, sum[b])) << "block " << b;
    EXPECT_NEAR(score.greatest[b], greatest[b], 1e-5 * std::max(1.0, greatest[b])) << "block " << b;
  }
}

TEST(BlockScores, IsThatOfDenseAttention) {
  for (std::int32_t num_tokens : {1, 7, 16, 40, 200}) {
    for (const kv::QueryWeights& observed :
         {kv::QueryWeights{1, 1.0f}, kv::QueryWeights{32, 1.0f}, kv::QueryWeights{kv::kAllQueries, 1.0f},
          kv::QueryWeights{kv::kAllQueries, 0.98f}}) {
      SCOPED_TRACE(testing::Message() << num_tokens << " tokens, " << observed.num_queries
                                      << " observed, decay " << observed.decay);
      OneSlice slice({.num_query_tokens = num_tokens, .group_size = 3, .head_dim = 64, .num_keys = 1300},
                     observed);
      expect_dense(slice);
    }
  }
}

// As if each had been a step of its own, so that those of rejected guesses can be left out.
TEST(BlockScores, OfGuessesIsKeptRowByRow) {
  constexpr std::int32_t kRows = 20, kKeys = 1300;
  OneSlice apart({.num_query_tokens = kRows, .group_size = 3, .head_dim = 64, .num_keys = kKeys},
                 {kv::kAllQueries, 0.98f});
  apart.keep_rows_apart();
  double total = 0.0;
  for (std::int32_t row = 0; row < kRows; ++row) {
    const kv::StepScores score = apart.run(row);
    EXPECT_EQ(score.num_queries, std::vector<std::int32_t>{1});
    const std::vector<double> sum = apart.dense_row(row);
    ASSERT_EQ(score.sum.size(), sum.size());
    for (std::size_t b = 0; b < sum.size(); ++b) EXPECT_NEAR(score.sum[b], sum[b], 1e-5);
    for (const float block : score.sum) total += block;
  }
  EXPECT_NEAR(total, 3.0 * kRows, 1e-3);
}

TEST(BlockScores, OfLayersThatReadTheSameCellsAddUp) {
  for (const std::int32_t num_tokens : {1, 20}) {
    for (const bool keeps_rows_apart : {false, true}) {
      OneSlice slice({.num_query_tokens = num_tokens, .group_size = 3, .head_dim = 64, .num_keys = 700},
                     {kv::kAllQueries, 1.0f});
      if (keeps_rows_apart && num_tokens > 1) slice.keep_rows_apart();
      const kv::StepScores one = slice.run(0), three = slice.run(0, 3);
      EXPECT_EQ(three.num_queries, one.num_queries);
      EXPECT_EQ(three.greatest, one.greatest);
      for (std::size_t b = 0; b < one.sum.size(); ++b) EXPECT_NEAR(three.sum[b], 3 * one.sum[b], 1e-4) << b;
    }
  }
}

TEST(BlockScores, OfHolesIsZero) {
  OneSlice slice(
      {.num_query_tokens = 20, .group_size = 2, .head_dim = 64, .num_keys = 700, .holes = {0, 5, 33}},
      {kv::kAllQueries, 1.0f});
  expect_dense(slice);
  EXPECT_EQ(slice.run().sum[5], 0.0f);
}

TEST(BlockScores, IsNotKeptWhereNobodyAsks) {
  OneSlice unasked({.num_query_tokens = 3, .num_keys = 100}, {});
  EXPECT_TRUE(unasked.run().is_empty());
  OneSlice windowed({.num_query_tokens = 3, .num_keys = 100, .window = 30}, {kv::kAllQueries, 1.0f});
  EXPECT_TRUE(windowed.run().is_empty());
}

}  // namespace
}  // namespace kvasir::backend::block_scores_test
