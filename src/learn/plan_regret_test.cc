#include "learn/plan_regret.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "kv/policy/registry.h"
#include "learn/plan_trials.h"

namespace kvasir::learn::plan_regret_test {
namespace {

constexpr std::int32_t kHeadDim = 64, kBlocks = 60, kCells = 4;

class PlanRegretOfForecasts : public testing::Test {
 protected:
  PlanRegretOfForecasts() {
    for (std::int32_t b = 0; b < kBlocks; ++b) {
      blocks_.push_back(BlockId{b});
      EXPECT_TRUE(cells_.fill(0, blocks_.back()));
    }
  }
  kv::PolicyView view(double budget) {
    settings_.budget_share = budget;
    return {.cells = cells_, .settings = settings_, .costs = costs_, .blocks = blocks_, .num_full_blocks = kBlocks, .scores = &scores_, .cell_weights = weights_};
  }
  float draw() { return static_cast<float>(random_() >> 8) * 0x1p-24f; }
  // Few blocks get most.
  std::vector<float> draw_attention() {
    std::vector<float> attention(kBlocks);
    for (float& value : attention) value = std::exp(6.0f * draw()) * draw();
    return attention;
  }
  std::vector<kv::BlockForecast> draw_forecasts(float greatest_chance) {
    std::vector<kv::BlockForecast> forecasts(kCells);
    for (kv::BlockForecast& forecast : forecasts) {
      forecast = {.attention = draw_attention(), .asked = std::vector<float>(kBlocks)};
      for (float& chance : forecast.asked) chance = greatest_chance * draw();
    }
    return forecasts;
  }
  static std::vector<std::vector<float>> attention_of(const std::vector<kv::BlockForecast>& forecasts) {
    std::vector<std::vector<float>> attention;
    for (const kv::BlockForecast& forecast : forecasts) attention.push_back(forecast.attention);
    return attention;
  }

  static constexpr kv::CellStore::Group kGroup = {.num_blocks = kBlocks, .cells_per_block = kCells, .head_dim = kHeadDim};
  kv::CellStore cells_{{&kGroup, 1}, kv::KvFormat::kF16, 2 * kv::CellArena::bytes_for(kBlocks* kCells, kv::KvFormat::kF16, kHeadDim), 0};
  kv::SequenceScores scores_{kv::DecayedMass::memory(), kCells, kHeadDim, kBlocks};
  kv::KvPolicySettings settings_{.policy = &kv::priced_ladder_policy()};
  const kv::FormatCosts costs_ = kv::usual_format_costs();
  const std::vector<float> weights_ = {0.25f, 0.25f, 3.0f, 0.5f};
  std::vector<BlockId> blocks_;
  std::mt19937 random_{5};
};

TEST_F(PlanRegretOfForecasts, IsBoundedByWhatTheForecastMissedTimesWhatThePlansDifferBy) {
  int num_acts = 0, num_with_slack = 0, num_by_middle_alone = 0;
  for (int i = 0; i < 100; ++i) {
    const std::vector<kv::BlockForecast> forecasts = draw_forecasts(i % 2 == 0 ? 0.0f : 0.03f);
    const std::vector<std::vector<float>> realised = attention_of(draw_forecasts(0.0f));
    for (const double budget : {0.6, 0.4, 0.3, 0.2, 0.15, 0.1}) {
      const PlanRegret regret = regret_of(view(budget), forecasts, realised);
      EXPECT_TRUE(regret.is_bounded_with_slack()) << budget << ": " << regret.left() << " " << regret.middle << " " << regret.slack();
      EXPECT_GT(regret.middle, 0.0) << budget;
      EXPECT_GT(regret.left(), 0.0) << budget << ": a forecast that has nothing to do with what came";
      EXPECT_NEAR(regret.planned, planned_cost(view(budget), forecasts), 1e-6 * regret.planned);
      ++num_acts;
      num_with_slack += regret.slack() > 0.0 ? 1 : 0;
      num_by_middle_alone += regret.is_bounded() ? 1 : 0;
    }
  }
  EXPECT_EQ(num_by_middle_alone, num_acts) << "the planner's slack is small beside a wrong forecast";
  RecordProperty("acts_with_slack", num_with_slack);
}

TEST_F(PlanRegretOfForecasts, IsNothingWhereTheForecastCameTrue) {
  const std::vector<kv::BlockForecast> forecasts = draw_forecasts(0.03f);
  for (const double budget : {0.5, 0.2, 0.1}) {
    const PlanRegret regret = regret_of(view(budget), forecasts, attention_of(forecasts));
    EXPECT_GT(regret.planned, 0.0);
    EXPECT_EQ(regret.left(), 0.0) << budget;
    EXPECT_EQ(regret.middle, 0.0) << budget;
  }
}

TEST_F(PlanRegretOfForecasts, CostsFallAsBudgetsRise) {
  const std::vector<kv::BlockForecast> forecasts = draw_forecasts(0.01f);
  double dearer = 1e30;
  for (const double budget : {0.08, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.9}) {
    const double cost = planned_cost(view(budget), forecasts);
    EXPECT_LT(cost, dearer) << budget;
    dearer = cost;
  }
  EXPECT_EQ(planned_cost(view(1.0), forecasts), 0.0);
}

// Every step's 16 queries give all blocks alike, and from block 30 on twice as much to block 5: no forecast can know it.
TEST(PlanTrialsOfTrace, KnowWhatCameBehindAMark) {
  constexpr kv::CellStore::Group kGroup = {.num_blocks = kBlocks, .cells_per_block = kCells, .head_dim = kHeadDim};
  kv::CellStore cells{{&kGroup, 1}, kv::KvFormat::kF16, 2 * kv::CellArena::bytes_for(kBlocks* kCells, kv::KvFormat::kF16, kHeadDim), 0};
  kv::SequenceScores scores{kv::DecayedMass::memory(), kCells, kHeadDim, kBlocks};
  const kv::KvPolicySettings settings;
  const kv::FormatCosts costs = kv::usual_format_costs();
  const PlanTrials seen({.marks = {20, 28, 50}, .budgets = {0.3, 0.15}, .query_heads_per_kv_head = 2});
  std::vector<BlockId> blocks;
  std::vector<kv::CellAction> actions;
  for (std::int32_t block = 0; block < kBlocks; ++block) {
    blocks.push_back(BlockId{block});
    ASSERT_TRUE(cells.fill(0, blocks.back()));
    std::vector<float> sum(static_cast<std::size_t>(kCells * (block + 1)), 1.0f);
    for (std::int32_t cell = 0; cell < kCells && block >= 30; ++cell) sum[static_cast<std::size_t>(cell * (block + 1) + 5)] = 9.0f;
    scores.add({.num_blocks = block + 1, .sum = sum, .greatest = {}, .num_queries = std::vector<std::int32_t>(kCells, 16)});
    for (std::int32_t cell = 0; cell < kCells; ++cell) scores.set_statistic(cell, block, 0.5f, 1.0f);
    seen.plan({.cells = cells, .settings = settings, .costs = costs, .blocks = blocks, .num_full_blocks = block + 1, .scores = &scores}, actions);
  }
  EXPECT_TRUE(actions.empty()) << "it only looks";
  const std::vector<PlanTrial> trials = seen.trials();
  ASSERT_EQ(trials.size(), 6u);
  for (std::size_t i = 0; i < trials.size(); ++i) {
    const PlanTrial& trial = trials[i];
    EXPECT_EQ(trial.num_tokens, i < 2 ? 320 : i < 4 ? 448 : 800);
    EXPECT_EQ(trial.budget, i % 2 == 0 ? 0.3 : 0.15);
    EXPECT_EQ(trial.is_known, i < 4) << "the last mark has no whole horizon";
    EXPECT_GT(trial.regret.planned, 0.0);
    if (!trial.is_known) continue;
    EXPECT_TRUE(trial.regret.is_bounded_with_slack());
    EXPECT_GT(trial.regret.left(), 0.0) << "block 5 came into use";
  }
  EXPECT_LT(trials[0].regret.planned, trials[1].regret.planned);
}

}  // namespace
}  // namespace kvasir::learn::plan_regret_test
