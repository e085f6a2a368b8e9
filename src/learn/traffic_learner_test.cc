#include "learn/traffic_learner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace kvasir::learn::traffic_learner_test {
namespace {

using namespace std::chrono_literals;

constexpr std::int32_t kHeadDim = 64, kBlocks = 52, kCells = 2;
constexpr std::int32_t kQuietBlocks = 20;  // all blocks are read alike until then, and behind it those with distinct keys

// Drives the policies that a learner gives, as an engine does.
class LearnerOfTraffic : public testing::Test {
 protected:
  LearnerOfTraffic() {
    for (std::int32_t b = 0; b < kBlocks; ++b) {
      blocks_.push_back(BlockId{b});
      EXPECT_TRUE(cells_.fill(0, blocks_.back()));
    }
  }
  static TrafficLearnerConfig config(std::vector<Champion>& saved, std::vector<std::string>& lines) {
    return {.is_shadow = [](RequestId id) { return static_cast<std::int64_t>(id) > 0; },
            .save =
                [&saved](const Champion& champion) {
                  saved.push_back(champion);
                  return Status{};
                },
            .warn = [&lines](const std::string& line) { lines.push_back(line); },
            .cpu_share = 1.0,
            .learning = {.num_first_sequences = 40, .fit = {.num_steps = 300, .num_rows_per_step = 128}}};
  }
  // A request whose policy looks on; false: it was not chosen.
  bool serve(TrafficLearner& learner, std::int64_t request) {
    const std::shared_ptr<const kv::KvPolicy> policy = learner.shadow(RequestId{static_cast<std::uint64_t>(request)});
    if (policy == nullptr) return false;
    std::mt19937_64 random(static_cast<std::uint64_t>(request));
    std::normal_distribution<float> normal;
    std::vector<float> distinctness(kBlocks);
    for (float& value : distinctness) value = normal(random);
    kv::SequenceScores scores(kv::DecayedMass::memory(), kCells, kHeadDim, kBlocks);
    for (std::int32_t block = 0; block < kBlocks; ++block) {
      std::vector<float> sum;
      for (std::int32_t i = 0; i < kCells * (block + 1); ++i) {
        const float of_block = distinctness[static_cast<std::size_t>(i % (block + 1))];
        sum.push_back(block < kQuietBlocks ? 1.0f : std::exp(1.2f * of_block));
      }
      scores.add({.num_blocks = block + 1, .sum = sum, .greatest = {}, .num_queries = std::vector<std::int32_t>(kCells, 16)});
      for (std::int32_t cell = 0; cell < kCells; ++cell) scores.set_statistic(cell, block, distinctness[static_cast<std::size_t>(block)], 1.0f);
      std::vector<kv::CellAction> actions;
      policy->plan({.cells = cells_,
                    .settings = settings_,
                    .costs = costs_,
                    .blocks = std::span(blocks_).first(static_cast<std::size_t>(block + 1)),
                    .num_full_blocks = block + 1,
                    .scores = &scores},
                   actions);
    }
    return true;
  }
  static bool comes_true(const std::function<bool()>& condition, std::chrono::seconds limit = 120s) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (std::chrono::steady_clock::now() < end) {
      if (condition()) return true;
      std::this_thread::sleep_for(2ms);
    }
    return false;
  }

  static constexpr kv::CellStore::Group kGroup = {.num_blocks = kBlocks, .cells_per_block = kCells, .head_dim = kHeadDim};
  // A forecast that expects most of those that get least.
  static std::shared_ptr<const kv::ForecastNetwork> wrong_forecast() {
    constexpr std::size_t kDistinctnessRank = 2;
    kv::ForecastNetwork network;
    network.input_weights[kDistinctnessRank][0] = 1.0f;
    network.output_weights[0] = -6.0f;
    network.hidden_biases.resize(kCells);
    network.output_biases.resize(kCells);
    return std::make_shared<const kv::ForecastNetwork>(network);
  }
  const kv::KvCacheConfig cache_{
      .groups = {{.num_blocks = kBlocks, .cells_per_block = kCells, .head_dim = kHeadDim, .network = wrong_forecast()}}};
  kv::CellStore cells_{{&kGroup, 1}, kv::KvFormat::kF16, 2 * kv::CellArena::bytes_for(kBlocks* kCells, kv::KvFormat::kF16, kHeadDim), 0};
  kv::KvPolicySettings settings_;
  kv::FormatCosts costs_ = kv::usual_format_costs();
  std::vector<BlockId> blocks_;
};

TEST_F(LearnerOfTraffic, ServesAndSavesWhatItHasLearned) {
  std::vector<Champion> saved;
  std::vector<std::string> lines;
  TrafficLearner learner(config(saved, lines));
  EXPECT_FALSE(serve(learner, 1)) << "there is no model yet";
  ASSERT_TRUE(learner.begin(cache_, "a.gguf"));
  EXPECT_TRUE(learner.begin(cache_, "a.gguf")) << "it has come again";
  EXPECT_FALSE(learner.begin(cache_, "b.gguf"));
  EXPECT_FALSE(serve(learner, 0)) << "not chosen";
  EXPECT_EQ(learner.served(), nullptr);
  for (std::int64_t request = 1; request <= 300 && learner.stats().num_promotions == 0; ++request) {
    ASSERT_TRUE(serve(learner, request));
    ASSERT_TRUE(comes_true([&] { return learner.stats().num_sequences + learner.stats().num_sequences_dropped >= request; }));
  }
  const KvLearningStats stats = learner.stats();
  EXPECT_EQ(stats.num_promotions, 1) << stats.duel_cost_ratio << " " << stats.log10_evidence;
  EXPECT_EQ(stats.version, 1);
  EXPECT_EQ(stats.num_sequences_dropped, 0);
  EXPECT_GE(stats.num_sequences, 240);
  EXPECT_GE(stats.num_rows, stats.num_sequences * kCells * kQuietBlocks / 2);
  ASSERT_NE(learner.served(), nullptr);
  EXPECT_EQ(learner.served()->version, 1);
  EXPECT_NE(learner.served()->of(0), nullptr);
  ASSERT_EQ(saved.size(), 1u);
  EXPECT_LT(saved[0].cost_ratio, 0.95);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("forecast version 1 serves new requests"), std::string::npos) << lines[0];
}

TEST_F(LearnerOfTraffic, RestsWhileRequestsWait) {
  std::vector<Champion> saved;
  std::vector<std::string> lines;
  TrafficLearner learner(config(saved, lines));
  ASSERT_TRUE(learner.begin(cache_, "a.gguf"));
  learner.note_waiting(1);
  ASSERT_TRUE(serve(learner, 1));
  EXPECT_FALSE(comes_true([&] { return learner.stats().num_sequences > 0; }, 1s));
  learner.note_waiting(0);
  EXPECT_TRUE(comes_true([&] { return learner.stats().num_sequences == 1; }));
}

TEST_F(LearnerOfTraffic, KeepsToItsShareOfTheProcessors) {
  std::vector<Champion> saved;
  std::vector<std::string> lines;
  TrafficLearnerConfig slow = config(saved, lines);
  slow.cpu_share = 2e-4;
  TrafficLearner learner(slow);
  ASSERT_TRUE(learner.begin(cache_, "a.gguf"));
  for (std::int64_t request = 1; request <= 40; ++request) serve(learner, request);
  EXPECT_TRUE(comes_true([&] { return learner.stats().num_sequences >= 1; }));
  EXPECT_FALSE(comes_true([&] { return learner.stats().num_sequences >= 10; }, 1s)) << "a sequence takes a good part of a millisecond, and earns it in a second";
  EXPECT_GT(learner.stats().num_sequences_dropped, 0) << "more than may wait";
}

}  // namespace
}  // namespace kvasir::learn::traffic_learner_test
