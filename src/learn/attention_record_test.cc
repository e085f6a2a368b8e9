// A record says what came, and the policy that reads it keeps what will be read.
#include "learn/attention_record.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "kv/policy/registry.h"
#include "learn/forecast_rows.h"
#include "learn/true_future.h"

namespace kvasir::learn::attention_record_test {
namespace {

constexpr std::int32_t kHeadDim = 64, kNumBlocks = 40;

class AttentionRecordOfText : public testing::Test {
 protected:
  AttentionRecordOfText() {
    for (std::int32_t b = 0; b < kNumBlocks; ++b) {
      blocks_.push_back(BlockId{b});
      EXPECT_TRUE(cells_.fill(0, blocks_.back()));
    }
  }
  kv::PolicyView view(std::int32_t num_full_blocks) const {
    return {.cells = cells_, .settings = settings_, .costs = costs_, .blocks = blocks_, .num_full_blocks = num_full_blocks, .scores = &scores_};
  }
  // Each query of the step that fills `block` pays so much to `target`, and nothing to others.
  void step(std::int32_t block, std::int32_t target, float attention) {
    std::vector<float> mass(kNumBlocks, 0.0f);
    mass[static_cast<std::size_t>(target)] = attention * kv::DecayedMass::memory().weight_of(kv::kTokensPerBlock);
    scores_.add({.num_blocks = kNumBlocks, .sum = mass, .greatest = {}, .num_queries = {kv::kTokensPerBlock}});
    record_.plan(view(block + 1), actions_);
  }

  static constexpr kv::CellStore::Group kGroup = {.num_blocks = kNumBlocks, .cells_per_block = 1, .head_dim = kHeadDim};
  kv::CellStore cells_{{&kGroup, 1}, kv::KvFormat::kF16, 2 * kv::CellArena::bytes_for(kNumBlocks, kv::KvFormat::kF16, kHeadDim), 0};
  kv::SequenceScores scores_{kv::DecayedMass::memory(), 1, kHeadDim, kNumBlocks};
  const kv::FormatCosts costs_ = kv::usual_format_costs();
  kv::KvPolicySettings settings_;
  std::vector<BlockId> blocks_;
  std::vector<kv::CellAction> actions_;
  AttentionRecord record_;
};

TEST_F(AttentionRecordOfText, SaysTheMeanOfTheQueriesToCome) {
  for (std::int32_t b = 0; b < 8; ++b) step(b, b < 4 ? 0 : 2, 0.5f);
  EXPECT_TRUE(actions_.empty()) << "it only looks";
  const float unit = kv::DecayedMass::of_one_query(1.0f);
  const std::vector<float> later = record_.later(0, 0, 3);  // of blocks 3 to 7: one pays to block 0, four to block 2
  ASSERT_EQ(later.size(), 3u);
  EXPECT_NEAR(later[0] * unit, 0.5 / 5, 1e-4);
  EXPECT_NEAR(later[1] * unit, 0.0, 1e-4);
  EXPECT_NEAR(later[2] * unit, 4 * 0.5 / 5, 1e-4);
  EXPECT_TRUE(record_.later(0, 0, 8).empty()) << "the text ended there";
  EXPECT_TRUE(record_.later(0, 1, 3).empty()) << "no such cell";
  EXPECT_TRUE(record_.later(1, 0, 3).empty()) << "no such group";
}

TEST_F(AttentionRecordOfText, LooksNoFartherThanTheHorizon) {
  for (std::int32_t b = 0; b < kNumBlocks; ++b) step(b, b < 4 + kHorizonBlocks ? 1 : 0, 1.0f);
  const std::vector<float> later = record_.later(0, 0, 4);
  EXPECT_NEAR(later[0], 0.0, 1e-3);
  EXPECT_NEAR(later[1] * kv::DecayedMass::of_one_query(1.0f), 1.0, 1e-3);
}

TEST_F(AttentionRecordOfText, TheFutureDecidesWhichBlockStays) {
  constexpr std::int32_t kRead = 20, kAsked = 7;
  for (std::int32_t b = 0; b < kNumBlocks - 1; ++b) step(b, b < kRead ? 3 : kAsked, 1.0f);  // block 3 had all attention so far
  scores_ = kv::SequenceScores(kv::DecayedMass::memory(), 1, kHeadDim, kNumBlocks);
  std::vector<float> mass(kNumBlocks, 0.1f);
  mass[3] = 50.0f;
  scores_.add({.num_blocks = kNumBlocks, .sum = mass, .greatest = {}, .num_queries = {kv::kTokensPerBlock}});
  settings_.budget_share = 0.1;
  blocks_.resize(kRead);
  TrueFuture policy;
  const auto is_dropped = [&](std::int32_t block) {
    actions_.clear();
    policy.plan(view(kRead), actions_);
    return std::ranges::any_of(actions_, [&](const kv::CellAction& action) { return action.block == block && action.to == kv::KvFormat::kGone; });
  };
  EXPECT_FALSE(is_dropped(3)) << "without a record the past decides";
  EXPECT_TRUE(is_dropped(kAsked));
  policy.read(&record_);
  EXPECT_FALSE(is_dropped(kAsked));
  EXPECT_TRUE(is_dropped(3));
}

TEST(AddedPolicy, IsFoundAsLongAsItLives) {
  TrueFuture policy;
  EXPECT_EQ(kv::find_policy(TrueFuture::kName), nullptr);
  {
    const kv::AddedPolicy added(policy);
    EXPECT_EQ(kv::find_policy(TrueFuture::kName), &policy);
    EXPECT_EQ(kv::find_policy("ladder"), &kv::ladder_policy());
  }
  EXPECT_EQ(kv::find_policy(TrueFuture::kName), nullptr);
}

}  // namespace
}  // namespace kvasir::learn::attention_record_test
