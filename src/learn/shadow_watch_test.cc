#include "learn/shadow_watch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <vector>

#include "learn/shadow_judge.h"

namespace kvasir::learn::shadow_watch_test {
namespace {

constexpr std::int32_t kHeadDim = 64, kMostBlocks = 96, kCells = 2;

// A sequence by hand, of steps of any length: each query gives each full block one unit in cell 0, and block 5 two more in cell 1.
class WatchedSequence : public testing::Test {
 protected:
  WatchedSequence() {
    for (std::int32_t b = 0; b < kMostBlocks; ++b) {
      blocks_.push_back(BlockId{b});
      EXPECT_TRUE(cells_.fill(0, blocks_.back()));
    }
  }
  void step(const ShadowWatch& watch, std::int32_t num_queries) {
    const std::int32_t before = num_tokens_ / kv::kTokensPerBlock;
    num_tokens_ += num_queries;
    const std::int32_t num_blocks = (num_tokens_ + kv::kTokensPerBlock - 1) / kv::kTokensPerBlock, num_full = num_tokens_ / kv::kTokensPerBlock;
    const float weight = kv::DecayedMass::memory().weight_of(num_queries);
    std::vector<float> sum(static_cast<std::size_t>(kCells * num_blocks), weight);
    if (num_blocks > 5) sum[static_cast<std::size_t>(num_blocks + 5)] += 2.0f * weight;
    scores_.add({.num_blocks = num_blocks, .sum = sum, .greatest = {}, .num_queries = std::vector<std::int32_t>(kCells, num_queries)});
    for (std::int32_t b = before; b < num_full; ++b) {
      for (std::int32_t cell = 0; cell < kCells; ++cell) scores_.set_statistic(cell, b, 0.5f, 1.0f);
    }
    if (num_full == before) return;
    std::vector<kv::CellAction> actions;
    watch.plan({.cells = cells_,
                .settings = settings_,
                .costs = costs_,
                .blocks = std::span(blocks_).first(static_cast<std::size_t>(num_blocks)),
                .num_full_blocks = num_full,
                .scores = &scores_,
                .num_computed_tokens = num_tokens_},
               actions);
    EXPECT_TRUE(actions.empty()) << "it only looks";
  }
  // The sequence that a watch of such steps delivers.
  std::optional<ShadowSequence> read(std::int32_t num_tokens, std::int32_t step_tokens) {
    std::optional<ShadowSequence> delivered;
    {
      const ShadowWatch watch([&](ShadowSequence sequence) { delivered = std::move(sequence); });
      while (num_tokens_ < num_tokens) step(watch, step_tokens);
      EXPECT_FALSE(delivered) << "before its end";
    }
    return delivered;
  }

  static constexpr kv::CellStore::Group kGroup = {.num_blocks = kMostBlocks, .cells_per_block = kCells, .head_dim = kHeadDim};
  kv::CellStore cells_{{&kGroup, 1}, kv::KvFormat::kF16, 2 * kv::CellArena::bytes_for(kMostBlocks* kCells, kv::KvFormat::kF16, kHeadDim), 0};
  kv::SequenceScores scores_{kv::DecayedMass::memory(), kCells, kHeadDim, kMostBlocks};
  kv::KvPolicySettings settings_;
  kv::FormatCosts costs_ = kv::usual_format_costs();
  std::vector<BlockId> blocks_;
  std::int32_t num_tokens_ = 0;
};

TEST_F(WatchedSequence, GivesTheAttentionOfTheHorizonWhateverTheStepsAre) {
  for (const std::int32_t step_tokens : {1, 16, 40, 128, 256}) {
    num_tokens_ = 0;
    scores_ = {kv::DecayedMass::memory(), kCells, kHeadDim, kMostBlocks};
    const auto sequence = read(1152, step_tokens);
    ASSERT_TRUE(sequence) << step_tokens;
    ASSERT_EQ(sequence->size(), 1u);
    const ShadowAct& act = sequence->front();
    EXPECT_GE(act.num_blocks, 32) << step_tokens;
    EXPECT_EQ(act.scores.num_blocks(), act.num_blocks);
    EXPECT_EQ(act.greatest_share.empty(), step_tokens > 32) << step_tokens;
    for (std::int32_t b = 0; b < act.num_blocks - 3; ++b) {  // the last ones were not yet full for all of the first step
      EXPECT_NEAR(act.later[act.at(0, b)], 512.0f, 26.0f) << step_tokens << " " << b;
      EXPECT_NEAR(act.later[act.at(1, b)], b == 5 ? 1536.0f : 512.0f, 77.0f) << step_tokens << " " << b;
    }
  }
}

TEST_F(WatchedSequence, AShortOneGivesNothing) { EXPECT_FALSE(read(16 * ShadowWatch::kFirstMark + 496, 16)); }

TEST_F(WatchedSequence, BeginsAnewWhenItIsComputedAnew) {
  std::optional<ShadowSequence> delivered;
  {
    const ShadowWatch watch([&](ShadowSequence sequence) { delivered = std::move(sequence); });
    while (num_tokens_ < 640) step(watch, 16);
    num_tokens_ = 0;
    scores_ = {kv::DecayedMass::memory(), kCells, kHeadDim, kMostBlocks};
    while (num_tokens_ < 640) step(watch, 16);
  }
  EXPECT_FALSE(delivered) << "neither stay had a horizon";
}

TEST_F(WatchedSequence, TeachesRowsOfEachBlockAndHead) {
  const auto sequence = read(1152, 16);
  ASSERT_TRUE(sequence);
  const ShadowJudge judge({.groups = {{.num_blocks = kMostBlocks, .cells_per_block = kCells, .head_dim = kHeadDim}}});
  std::vector<ForecastRow> rows;
  judge.add_rows(*sequence, nullptr, rows);
  const std::int32_t num_blocks = sequence->front().num_blocks;
  ASSERT_EQ(std::ssize(rows), kCells * num_blocks);
  EXPECT_EQ(rows[static_cast<std::size_t>(num_blocks)].cell, 1);
  const auto of_cell_1 = [&](std::int32_t b) { return rows[static_cast<std::size_t>(num_blocks + b)]; };
  EXPECT_NEAR(of_cell_1(5).target / of_cell_1(8).target, 3.0f, 0.1f);
}

}  // namespace
}  // namespace kvasir::learn::shadow_watch_test
