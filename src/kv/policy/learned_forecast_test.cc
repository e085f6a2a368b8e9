// A forecast that was learned says what its network says, and without one all is as before.
#include "kv/policy/learned_forecast.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "base/portable_exp.h"
#include "base/portable_log.h"
#include "kv/policy/registry.h"

namespace kvasir::kv::learned_forecast_test {
namespace {

constexpr std::int32_t kHeadDim = 64, kNumBlocks = 40, kNumFull = kNumBlocks - 1, kNumCells = 2;

ForecastNetwork silent_network() {
  return {.hidden_biases = std::vector<ForecastNetwork::Hidden>(kNumCells), .output_biases = std::vector<float>(kNumCells, 0.0f)};
}

class LearnedForecastOfView : public testing::Test {
 protected:
  LearnedForecastOfView() {
    for (std::int32_t b = 0; b < kNumBlocks; ++b) {
      blocks_.push_back(BlockId{b});
      EXPECT_TRUE(cells_.fill(0, blocks_.back()));
    }
    std::mt19937 random(3);
    std::vector<float> mass(kNumCells * kNumBlocks);
    for (float& amount : mass) amount = 0.01f * static_cast<float>(random() % 1000);
    scores_.add({.num_blocks = kNumBlocks, .sum = mass, .greatest = {}, .num_queries = {16, 16}});
    for (std::int32_t cell = 0; cell < kNumCells; ++cell) {
      for (std::int32_t b = 0; b < kNumFull; ++b) {
        // Each drawn by itself: compilers evaluate arguments in different orders.
        const float longest_value = 1.0f + static_cast<float>(random() % 8);
        scores_.set_statistic(cell, b, 0.001f * static_cast<float>(random() % 1000), longest_value);
      }
    }
  }
  PolicyView view() const {
    return {.cells = cells_,
            .settings = settings_,
            .costs = costs_,
            .blocks = blocks_,
            .num_full_blocks = kNumFull,
            .scores = &scores_,
            .network = &network_};
  }
  BlockForecast forecast(std::int32_t cell) const {
    const PolicyView of_now = view();
    LearnedForecast learned(of_now);
    BlockForecast result;
    learned.forecast(cell, result);
    return result;
  }
  float mean_score(std::int32_t cell) const {
    float sum = 0.0f;
    for (std::int32_t b = 0; b < kNumFull; ++b) sum += scores_.scores(cell)[static_cast<std::size_t>(b)];
    return sum / kNumFull;
  }

  static constexpr CellStore::Group kGroup = {
      .num_blocks = kNumBlocks, .cells_per_block = kNumCells, .head_dim = kHeadDim};
  CellStore cells_{{&kGroup, 1},
                   KvFormat::kF16,
                   2 * CellArena::bytes_for(kNumBlocks* kNumCells, KvFormat::kF16, kHeadDim),
                   0};
  SequenceScores scores_{DecayedMass::memory(), kNumCells, kHeadDim, kNumBlocks};
  const FormatCosts costs_ = usual_format_costs();
  KvPolicySettings settings_{.policy = &learned_ladder_policy()};
  std::vector<BlockId> blocks_;
  ForecastNetwork network_ = silent_network();
};

TEST(PortableExp, IsTheLibrarysToFourteenDigits) {
  EXPECT_EQ(portable_exp(0.0), 1.0);
  for (double x = -30.0; x < 30.0; x += 0.0173) EXPECT_NEAR(portable_exp(x) / std::exp(x), 1.0, 1e-14) << x;
  for (double x = -12.0; x < 6.0; x += 0.1) EXPECT_NEAR(portable_log(portable_exp(x)), x, 1e-13);
}

TEST(ForecastNetwork, SumsItsUnitsAndStaysInItsRange) {
  ForecastNetwork network = silent_network();
  network.input_weights[0][0] = 2.0f;
  network.input_weights[1][3] = -1.0f;
  network.hidden_biases[1][3] = 0.5f;
  network.output_weights[0] = 0.5f;
  network.output_weights[3] = 3.0f;
  network.output_biases[1] = -1.0f;
  EXPECT_EQ(network.outputs(1, {3.0f, 0.25f}).log_of_attention, 0.5f * 6.0f + 3.0f * 0.25f - 1.0f);
  EXPECT_EQ(network.outputs(1, {-3.0f, 4.0f}).log_of_attention, -1.0f) << "no unit fires";
  EXPECT_EQ(network.outputs(0, {3.0f, 0.0f}).log_of_attention, 3.0f);
  EXPECT_EQ(network.outputs(0, {1e6f}).log_of_attention, ForecastNetwork::kMost);
  network.output_biases[0] = -1e6f;
  EXPECT_EQ(network.outputs(0, {}).log_of_attention, ForecastNetwork::kLeast);
  network.output_biases[0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(network.outputs(0, {}).log_of_attention, ForecastNetwork::kLeast);
}

TEST(ForecastNetwork, AskedOutputHasWeightsAndBiasesOfItsOwn) {
  ForecastNetwork network = silent_network();
  EXPECT_EQ(network.outputs(0, {}).log_odds_of_asked, ForecastNetwork::kLeast) << "it was not learned";
  network.asked_biases = {0.25f, -2.0f};
  network.asked_weights[0] = -0.5f;
  network.output_weights[0] = 4.0f;
  network.input_weights[0][0] = 1.0f;
  EXPECT_EQ(network.outputs(0, {2.0f}).log_odds_of_asked, 0.25f - 1.0f);
  EXPECT_EQ(network.outputs(1, {2.0f}).log_odds_of_asked, -3.0f);
  EXPECT_EQ(network.outputs(1, {-2.0f}).log_odds_of_asked, -2.0f) << "no unit fires";
  EXPECT_EQ(network.outputs(1, {1.25f}).log_of_attention, 5.0f);
}

TEST_F(LearnedForecastOfView, ANetworkThatSaysNothingExpectsTheMean) {
  network_.output_biases[1] = 2.0f;
  for (const std::int32_t cell : {0, 1}) {
    const double wanted = mean_score(cell) * (cell == 0 ? 1.0 : std::exp(2.0));
    for (const float attention : forecast(cell).attention) EXPECT_NEAR(attention / wanted, 1.0, 1e-5);
  }
}

TEST_F(LearnedForecastOfView, HandsOnWhatTheFirstInputSays) {
  constexpr float kLift = 20.0f;  // so that the unit always fires
  network_.input_weights[0][0] = 1.0f;
  network_.hidden_biases[0][0] = kLift;
  network_.output_weights[0] = 1.0f;
  network_.output_biases[0] = -kLift;
  const BlockForecast result = forecast(0);
  const float mean = mean_score(0);
  for (std::size_t b = 0; b < result.attention.size(); ++b) {
    const float wanted = scores_.scores(0)[b] + 1e-4f * mean;
    EXPECT_NEAR(result.attention[b] / wanted, 1.0, 1e-4) << b;
  }
}

TEST_F(LearnedForecastOfView, ChanceIsTheNetworksWhereItHasOne) {
  const BlockForecast without = forecast(1);
  EXPECT_FALSE(without.asked_buys_bits);
  EXPECT_NE(without.asked[3], without.asked[4]) << "it is of the keys";
  network_.asked_biases = {-1.0f, 2.0f};
  for (const std::int32_t cell : {0, 1}) {
    const BlockForecast result = forecast(cell);
    EXPECT_TRUE(result.asked_buys_bits);
    for (const float asked : result.asked) EXPECT_NEAR(asked, 0.3 / (1.0 + std::exp(cell == 0 ? 1.0 : -2.0)), 1e-6);
  }
}

TEST_F(LearnedForecastOfView, ExpectsNothingOfABlockThatIsGone) {
  scores_.freeze(0, 5);
  const BlockForecast result = forecast(0);
  EXPECT_EQ(result.attention[5], 0.0f);
  EXPECT_GT(result.attention[6], 0.0f);
}

TEST_F(LearnedForecastOfView, HasTheSameBitsOnEveryMachine) {
  std::mt19937 random(7);
  const auto draw = [&] { return 0.001f * static_cast<float>(random() % 2000) - 1.0f; };
  for (auto& weights : network_.input_weights) {
    for (float& weight : weights) weight = draw();
  }
  for (auto& biases : network_.hidden_biases) {
    for (float& bias : biases) bias = draw();
  }
  for (float& weight : network_.output_weights) weight = draw();
  std::uint64_t hash = 0xCBF29CE484222325;  // FNV-1a
  for (const std::int32_t cell : {0, 1}) {
    for (const float attention : forecast(cell).attention) hash = (hash ^ std::bit_cast<std::uint32_t>(attention)) * 0x100000001B3;
  }
  EXPECT_EQ(hash, 9183218288938631581u);
}

TEST_F(LearnedForecastOfView, WithoutANetworkThePolicyActsAsThePricedLadder) {
  settings_.budget_share = 0.15;
  PolicyView of_now = view();
  of_now.network = nullptr;
  std::vector<CellAction> learned, priced, with_network;
  learned_ladder_policy().plan(of_now, learned);
  priced_ladder_policy().plan(of_now, priced);
  learned_ladder_policy().plan(view(), with_network);
  ASSERT_EQ(learned.size(), priced.size());
  EXPECT_FALSE(learned.empty());
  for (std::size_t i = 0; i < learned.size(); ++i) {
    EXPECT_EQ(learned[i].block, priced[i].block);
    EXPECT_EQ(learned[i].cell, priced[i].cell);
    EXPECT_EQ(learned[i].to, priced[i].to);
  }
  EXPECT_FALSE(with_network.empty());
}

}  // namespace
}  // namespace kvasir::kv::learned_forecast_test
