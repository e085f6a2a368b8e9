// A forecast decides some things, and cannot decide others.
#include "kv/policy/priced_ladder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "kv/policy/registry.h"

namespace kvasir::kv::priced_ladder_test {
namespace {

constexpr std::int32_t kHeadDim = 64, kNumBlocks = 64, kNumFull = kNumBlocks - 1, kNumCells = 4;
constexpr std::int64_t kFineBytes = cell_bytes(KvFormat::kF16, kHeadDim);

class PricedLadderOfForecasts : public testing::Test {
 protected:
  PricedLadderOfForecasts() {
    for (std::int32_t b = 0; b < kNumBlocks; ++b) {
      blocks_.push_back(BlockId{b});
      EXPECT_TRUE(cells_.fill(0, blocks_.back()));
    }
    const BlockForecast alike{std::vector(kNumFull, 1.0f), std::vector(kNumFull, 0.0f)};
    forecasts_.assign(kNumCells, alike);
  }
  PolicyView view() const {
    return {.cells = cells_,
            .settings = settings_,
            .costs = costs_,
            .blocks = blocks_,
            .num_full_blocks = kNumFull,
            .scores = &scores_};
  }
  void plan(double budget_share) {
    settings_.budget_share = budget_share;
    const PolicyView of_now = view();
    PricedLadder ladder(of_now);
    for (const BlockForecast& forecast : forecasts_) ladder.add_cell(forecast);
    actions_.clear();
    ladder.plan(actions_);
    formats_.clear();
    for (const CellAction& action : actions_) {
      EXPECT_TRUE(formats_.emplace(std::pair(action.block, action.cell), action.to).second);
    }
  }
  KvFormat format(std::int32_t block, std::int32_t cell) const {
    const auto found = formats_.find({block, cell});
    return found == formats_.end() ? KvFormat::kF16 : found->second;
  }
  std::int64_t bytes_of(std::int32_t cell) const {
    std::int64_t sum = 0;
    for (std::int32_t b = 0; b < kNumBlocks; ++b) sum += cell_bytes(format(b, cell), kHeadDim);
    return sum;
  }
  std::int64_t num_dropped(std::int32_t cell) const {
    return std::ranges::count_if(actions_, [&](const CellAction& action) {
      return action.cell == cell && action.to == KvFormat::kGone;
    });
  }
  // Bytes of keys and values below those that the budget leaves.
  std::int64_t bytes_left() const {
    std::int64_t left = kNumCells * view().allowed_bytes();
    for (std::int32_t cell = 0; cell < kNumCells; ++cell) left -= bytes_of(cell);
    return left;
  }

  static constexpr KeyBasis kBases[kNumCells] = {};
  static constexpr CellStore::Group kGroup = {
      .num_blocks = kNumBlocks, .cells_per_block = kNumCells, .head_dim = kHeadDim, .key_bases = kBases};
  CellStore cells_{{&kGroup, 1},
                   KvFormat::kF16,
                   2 * CellArena::bytes_for(kNumBlocks* kNumCells, KvFormat::kF16, kHeadDim),
                   0};
  SequenceScores scores_{DecayedMass::memory(), kNumCells, kHeadDim, kNumBlocks};
  FormatCosts costs_ = usual_format_costs();
  KvPolicySettings settings_{.policy = &priced_ladder_policy()};
  std::vector<BlockId> blocks_;
  std::vector<BlockForecast> forecasts_;
  std::vector<CellAction> actions_;
  std::map<std::pair<std::int32_t, std::int32_t>, KvFormat> formats_;
};

TEST_F(PricedLadderOfForecasts, KeepsComponentsOutOfTheFirstBlock) {
  plan(0.16);
  EXPECT_EQ(std::ranges::count(actions_, KvFormat::kK2pV2, &CellAction::to), 0) << "no cost says what it loses";
  costs_[KvFormat::kK2pV2] = 0.29f;
  plan(0.25);  // k3cv2 would do for all
  EXPECT_EQ(std::ranges::count(actions_, KvFormat::kK2pV2, &CellAction::to), 0);
  EXPECT_EQ(std::ranges::count(actions_, KvFormat::kGone, &CellAction::to), 0);
  for (const double budget : {0.2, 0.16}) {
    plan(budget);
    EXPECT_GE(bytes_left(), 0);
    EXPECT_GT(std::ranges::count(actions_, KvFormat::kK2pV2, &CellAction::to), kNumCells * kNumFull / 4);
    for (std::int32_t cell = 0; cell < kNumCells; ++cell) EXPECT_NE(format(0, cell), KvFormat::kK2pV2);
  }
  plan(0.12);  // less than components take
  EXPECT_GT(std::ranges::count(actions_, KvFormat::kGone, &CellAction::to), 0);
  for (std::int32_t cell = 0; cell < kNumCells; ++cell) EXPECT_NE(format(0, cell), KvFormat::kK2pV2);
}

TEST_F(PricedLadderOfForecasts, TakesEqualBlocksOneByOneAndTheOldestFirst) {
  for (const double budget : {0.6, 0.4, 0.15, 0.1}) {
    plan(budget);
    EXPECT_GE(bytes_left(), 0) << budget;
    EXPECT_LT(bytes_left(), kFineBytes) << budget << ": more than the one step that was too many";
    for (std::int32_t cell = 0; cell < kNumCells; ++cell) {
      for (std::int32_t b = 1; b + 1 < kNumFull - kNumGraceBlocks; ++b) {
        const KvFormat older = format(b, cell), newer = format(b + 1, cell);
        EXPECT_TRUE(older == newer || is_coarser(older, newer)) << budget << ", block " << b;
      }
    }
  }
}

TEST_F(PricedLadderOfForecasts, BuysABlockThatMayBeAskedForItsStayButNoBits) {
  for (BlockForecast& forecast : forecasts_) forecast.asked[1] = 0.1f;  // else the first to go
  plan(0.1);
  for (std::int32_t cell = 0; cell < kNumCells; ++cell) {
    EXPECT_NE(format(1, cell), KvFormat::kGone);
    EXPECT_EQ(format(2, cell), KvFormat::kGone);
  }
  plan(0.3);
  for (std::int32_t cell = 0; cell < kNumCells; ++cell) EXPECT_EQ(format(1, cell), format(2, cell));
}

TEST_F(PricedLadderOfForecasts, AChanceThatBuysBitsBuysThemForItsBlockAlone) {
  forecasts_[1].asked_buys_bits = true;
  for (BlockForecast& forecast : forecasts_) forecast.asked[1] = 0.1f;
  plan(0.3);
  EXPECT_TRUE(is_coarser(format(2, 1), format(1, 1)));
  EXPECT_EQ(format(2, 1), format(2, 0));
  for (const std::int32_t other : {0, 2, 3}) EXPECT_EQ(format(1, other), format(2, other)) << "their chances buy none";
}

TEST_F(PricedLadderOfForecasts, DropsNothingWhereAFormatWithATolerableLossWouldDo) {
  for (BlockForecast& forecast : forecasts_) {
    for (std::size_t b = 8; b < 16; ++b) forecast.attention[b] = 1e4f;
  }
  plan(0.23);
  for (std::int32_t cell = 0; cell < kNumCells; ++cell) EXPECT_EQ(num_dropped(cell), 0);
  plan(0.207);  // kept by k3v2 alone, which loses more than a tenth of a drop
  for (std::int32_t cell = 0; cell < kNumCells; ++cell) EXPECT_GT(num_dropped(cell), 0);
}

TEST_F(PricedLadderOfForecasts, GivesTheBitsOfQuietBlocksToBusyOnesOfAnyHead) {
  forecasts_[2].attention.assign(kNumFull, 50.0f);
  plan(0.4);
  for (std::int32_t b = 0; b < kNumFull; ++b) {
    for (const std::int32_t other : {0, 1, 3}) EXPECT_TRUE(is_coarser(format(b, other), format(b, 2))) << b;
  }
}

TEST_F(PricedLadderOfForecasts, DropsAHeadThatLooksNotFarBackBeforeOthersLoseAnything) {
  forecasts_[1].attention.assign(kNumFull, 1e-6f);
  plan(0.17);
  EXPECT_GT(num_dropped(1), 3 * kNumFull / 4);
  EXPECT_GE(bytes_of(1), kNumBlocks * kFineBytes / 40) << "it keeps what is pinned, and a fortieth";
  for (const std::int32_t other : {0, 2, 3}) EXPECT_EQ(num_dropped(other), 0);
  EXPECT_GE(bytes_left(), 0);
  plan(0.06);  // takes some of each
  for (const std::int32_t other : {0, 2, 3}) EXPECT_GT(num_dropped(other), kNumFull / 2);
  EXPECT_GE(bytes_left(), 0);
}

TEST_F(PricedLadderOfForecasts, NoForecastVotesAGuardAway) {
  constexpr std::int32_t kMassive = 30;
  for (std::int32_t cell = 0; cell < kNumCells; ++cell) {
    for (std::int32_t b = 0; b < kNumFull; ++b) {
      scores_.set_statistic(cell, b, -0.9f, b == kMassive ? 50.0f : 1.0f);
    }
  }
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<float> nonsense = {std::nanf(""), kInfinity, -kInfinity, -1.0f, 0.0f, 1e-38f, 3e38f};
  for (const float attention : nonsense) {
    for (const float asked : nonsense) {
      BlockForecast& forecast = forecasts_[1];
      forecast.attention.assign(kNumFull, 1.0f);
      forecast.asked.assign(kNumFull, 0.0f);
      for (std::size_t b = 0; b < kNumFull; b += 2) forecast.attention[b] = attention;
      for (std::size_t b = 0; b < kNumFull; b += 3) forecast.asked[b] = asked;
      for (const double budget : {0.3, 0.1, 0.06}) {
        plan(budget);
        EXPECT_GE(bytes_left(), 0);
        for (const auto& [block, cell, to, reason, of_one_query] : actions_) {
          if (to != KvFormat::kGone) continue;
          EXPECT_GE(block, kNumSinkBlocks);
          EXPECT_LT(block, kNumFull - kNumGraceBlocks);
          EXPECT_NE(block, kMassive);
        }
        for (std::int32_t cell = 0; cell < kNumCells; ++cell) {
          EXPECT_GE(bytes_of(cell), std::min(kNumBlocks * kFineBytes / 40, view().allowed_bytes() / 2));
        }
      }
    }
  }
}

// Where a forecast has no numbers, or too few, its head's blocks are alike, and the others keep theirs.
TEST_F(PricedLadderOfForecasts, TakesBlocksForAlikeWhereAForecastIsUnsound) {
  StepScores step{.num_blocks = kNumFull, .sum = std::vector(kNumCells * kNumFull, 1.0f)};
  step.num_queries.assign(kNumCells, 1);
  scores_.add(step);
  forecasts_[1].attention[5] = std::nanf("");
  forecasts_[2].asked.pop_back();
  EXPECT_FALSE(forecasts_[1].is_sound());
  plan(0.15);
  for (const std::int32_t cell : {1, 2}) {
    std::int32_t num_other = 0;
    for (std::int32_t b = 0; b < kNumFull; ++b) num_other += format(b, cell) == format(b, 3) ? 0 : 1;
    EXPECT_LE(num_other, 1) << "more than the step at which the budget was kept";
  }
}

TEST_F(PricedLadderOfForecasts, SaysWhyAndWhatItExpected) {
  plan(0.1);
  for (const CellAction& action : actions_) {
    const bool is_drop = action.to == KvFormat::kGone;
    EXPECT_EQ(action.reason, is_drop ? ActionReason::kSeldomAsked : ActionReason::kLeastPrice);
    EXPECT_NEAR(action.forecast, 0.005f, 1e-6f);  // of a memory of 200 queries
  }
}

// Forecasts and prices have one order of operations, so every
// machine makes these decisions.
TEST_F(PricedLadderOfForecasts, DecidesAlikeOnEveryInstructionSet) {
  std::mt19937 random(7);
  const auto draw = [&] { return static_cast<float>(random() >> 8) * 0x1p-24f; };
  StepScores step{.num_blocks = kNumBlocks};
  step.num_queries.assign(kNumCells, 1);
  for (std::int32_t i = 0; i < kNumCells * kNumBlocks; ++i) step.sum.push_back(draw() * draw() * draw());
  scores_.add(step);
  for (std::int32_t cell = 0; cell < kNumCells; ++cell) {
    for (std::int32_t b = 0; b < kNumFull; ++b) scores_.set_statistic(cell, b, -draw(), 1.0f);
  }
  std::uint64_t hash = 0xcbf29ce484222325u;
  const auto add = [&](auto value) { hash = (hash ^ static_cast<std::uint64_t>(value)) * 0x100000001b3u; };
  for (const double budget : {0.5, 0.25, 0.2, 0.15, 0.1, 0.06}) {
    settings_.budget_share = budget;
    actions_.clear();
    priced_ladder_policy().plan(view(), actions_);
    for (const CellAction& action : actions_) {
      add(action.block);
      add(action.cell);
      add(action.to);
      add(action.reason);
      add(std::bit_cast<std::uint32_t>(action.forecast));
    }
  }
  EXPECT_EQ(hash, 11618089064083639243u);
}

TEST(DecayedMass, CountsABlockThatFewQueriesSawAsIfTheOthersWereAlike) {
  const CellStore::Group group = {.num_blocks = kNumBlocks, .cells_per_block = 1, .head_dim = kHeadDim};
  const CellStore cells({&group, 1}, KvFormat::kF16,
                        CellArena::bytes_for(kNumBlocks, KvFormat::kF16, kHeadDim), 0);
  const std::vector<BlockId> blocks(kNumBlocks, kHole);
  SequenceScores scores(DecayedMass::memory(), 1, kHeadDim, kNumBlocks);
  scores.add(
      {.num_blocks = kNumBlocks, .sum = std::vector(kNumBlocks, 1.0f), .greatest = {}, .num_queries = {1}});
  scores.freeze(0, 3);
  for (std::int32_t b = 0; b < kNumFull; ++b) scores.set_statistic(0, b, b == 7 ? -0.1f : -0.9f);
  const KvPolicySettings settings;
  const FormatCosts costs;
  const PolicyView view{.cells = cells,
                        .settings = settings,
                        .costs = costs,
                        .blocks = blocks,
                        .num_full_blocks = kNumFull,
                        .scores = &scores};
  DecayedMass mass(view);
  BlockForecast forecast;
  mass.forecast(0, forecast);
  EXPECT_TRUE(forecast.is_sound());
  for (std::int32_t b = 0; b < kNumFull; ++b) {
    const double seen = 1.0 - std::pow(0.995, view.num_later_queries(b));
    const auto place = static_cast<std::size_t>(b);
    EXPECT_NEAR(forecast.attention[place], b == 3 ? 0.0 : 1.0 / seen, 1e-4 / seen) << b;
    EXPECT_TRUE(b == 7 || forecast.asked[place] < forecast.asked[7]) << b;
  }
}

}  // namespace
}  // namespace kvasir::kv::priced_ladder_test
