#include "learn/forecast_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace kvasir::learn::forecast_rows_test {
namespace {

constexpr std::int32_t kHeadDim = 64, kBlocks = 60, kCells = 2, kMark = 20;

// A trace by hand: each step's 16 queries give cell c (1 + c) units to each block before. Ten steps behind the mark block 5 gets
// 40 more of cell 1 once, which is a good third of the step's, and block 7 gets 5 more of cell 0, which is a seventh.
class ForecastRowsOfTrace : public testing::Test {
 protected:
  void read() {
    for (std::int32_t block = 0; block < kBlocks; ++block) {
      blocks_.push_back(BlockId{block});
      ASSERT_TRUE(cells_.fill(0, blocks_.back()));
      std::vector<float> sum(static_cast<std::size_t>(kCells * (block + 1)));
      for (std::int32_t cell = 0; cell < kCells; ++cell) {
        for (std::int32_t b = 0; b <= block; ++b) sum[static_cast<std::size_t>(cell * (block + 1) + b)] = static_cast<float>(1 + cell);
      }
      if (block == kMark + 9) {
        sum[static_cast<std::size_t>(block + 1 + 5)] += 40.0f;
        sum[7] += 5.0f;
      }
      scores_.add({.num_blocks = block + 1, .sum = sum, .greatest = {}, .num_queries = std::vector<std::int32_t>(kCells, 16)});
      for (std::int32_t cell = 0; cell < kCells; ++cell) scores_.set_statistic(cell, block, 0.5f, 1.0f);
      seen_.plan({.cells = cells_, .settings = settings_, .costs = costs_, .blocks = blocks_, .num_full_blocks = block + 1, .scores = &scores_}, actions_);
    }
  }

  static constexpr kv::CellStore::Group kGroup = {.num_blocks = kBlocks, .cells_per_block = kCells, .head_dim = kHeadDim};
  kv::CellStore cells_{{&kGroup, 1}, kv::KvFormat::kF16, 2 * kv::CellArena::bytes_for(kBlocks* kCells, kv::KvFormat::kF16, kHeadDim), 0};
  kv::SequenceScores scores_{kv::DecayedMass::memory(), kCells, kHeadDim, kBlocks};
  kv::KvPolicySettings settings_;
  kv::FormatCosts costs_ = kv::usual_format_costs();
  std::vector<BlockId> blocks_;
  std::vector<kv::CellAction> actions_;
  ForecastRows seen_{{kMark, 50}};
};

TEST_F(ForecastRowsOfTrace, TargetsAreTheAttentionOfTheHorizon) {
  read();
  EXPECT_TRUE(actions_.empty()) << "it only looks";
  const std::vector<ForecastRow> rows = seen_.take();
  ASSERT_EQ(std::ssize(rows), kMark * kCells) << "the second mark has no whole horizon";
  EXPECT_TRUE(seen_.take().empty());
  for (std::int32_t cell = 0; cell < kCells; ++cell) {
    const auto row = [&](std::int32_t b) { return rows[static_cast<std::size_t>(cell * kMark + b)]; };
    EXPECT_EQ(row(0).cell, cell);
    // Both cells' blocks get the same share of their head's means.
    EXPECT_NEAR(row(3).target, rows[3].target, 1e-3f * rows[3].target);
    const float units_of_5 = row(5).target / row(3).target * 32.0f * static_cast<float>(1 + cell);
    EXPECT_NEAR(units_of_5, 32.0f * static_cast<float>(1 + cell) + (cell == 1 ? 40.0f : 0.0f), 0.5f);
    for (std::int32_t b = 0; b < kMark; ++b) EXPECT_EQ(row(b).asked, cell == 1 && b == 5 ? 1.0f : 0.0f) << b;
  }
}

}  // namespace
}  // namespace kvasir::learn::forecast_rows_test
