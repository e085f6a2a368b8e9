// A sequence with a policy finds prefixes of those without one (exact_prefix.cc).
#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "kv/policy/registry.h"
#include "kv/testing/manager_under_test.h"

namespace kvasir::kv::exact_prefix_test {
namespace {

constexpr std::int32_t kChunkTokens = 4 * kTokensPerBlock;
constexpr std::int32_t kPromptTokens = 5 * kChunkTokens;
constexpr std::int32_t kNumCells = 2;

class ExactPrefix : public testing::Test {
 protected:
  // In chunks, each of which pays the more attention to a block the later it comes.
  SequenceKv read(const KvPolicySettings& policy, std::string_view salt = "", std::int32_t chunk_tokens = kChunkTokens) {
    SequenceKv kv = manager_.open({salt, "", tokens_}, true, kPromptTokens, policy);
    num_cached_ = manager_.match_prefix(kv, tokens_);
    manager_.act_on_found_prefix(kv);
    for (std::int32_t end = num_cached_; end < kPromptTokens;) {
      end = std::min(end + chunk_tokens, kPromptTokens);
      EXPECT_TRUE(manager_.allocate(kv, end));
      for (SequenceScores& scores : kv.scores) scores.add(attention_of(blocks_for(end)));
      manager_.commit(kv, tokens_, end);
      manager_.demotion().begin();
      manager_.demotion().demote(kv, end, kPromptTokens);
      manager_.demotion().end();
      manager_.forget_conversions();
    }
    return kv;
  }
  static StepScores attention_of(std::int32_t num_blocks) {
    StepScores step{.num_blocks = num_blocks, .sum = {}, .greatest = {}, .num_queries = {kChunkTokens, kChunkTokens}};
    for (std::int32_t i = 0; i < kNumCells * num_blocks; ++i) step.sum.push_back(static_cast<float>(i % num_blocks));
    step.greatest = step.sum;
    return step;
  }
  // By logical block and cell.
  std::vector<KvFormat> formats_of(const SequenceKv& kv) const {
    std::vector<KvFormat> formats;
    for (const BlockId block : kv.table(0).blocks()) {
      for (std::int32_t cell = 0; cell < kNumCells; ++cell) formats.push_back(manager_.cells().at(0, block, cell).format());
    }
    return formats;
  }
  void read_and_free(const KvPolicySettings& policy, std::string_view salt = "") {
    SequenceKv kv = read(policy, salt);
    manager_.free(kv);
  }

  KvCacheManager manager_{{.groups = {{.num_blocks = 100, .cells_per_block = kNumCells}},
                           .prompt_chunk_tokens = kChunkTokens,
                           .prefix_hash_key = {3, 4}}};
  const std::vector<TokenId> tokens_ = iota_tokens(kPromptTokens);
  const KvPolicySettings half_ = {.policy = &ladder_policy(), .budget_share = 0.5};
  std::int32_t num_cached_ = 0;
};

TEST_F(ExactPrefix, IsFoundUpToTheFirstChunkThatLeavesNoRoomAndEndsAsIfItWereNot) {
  SequenceKv alone = read(half_, "alone");
  ASSERT_EQ(num_cached_, 0);
  SequenceKv exact = read({});
  const SequenceKv behind = read(half_);
  EXPECT_EQ(num_cached_, 3 * kChunkTokens);
  EXPECT_EQ(formats_of(behind), formats_of(alone));
  EXPECT_NE(formats_of(behind), formats_of(exact));
  for (std::int32_t cell = 0; cell < kNumCells; ++cell) {
    EXPECT_TRUE(std::ranges::equal(behind.scores[0].scores(cell), alone.scores[0].scores(cell)));
  }
}

TEST_F(ExactPrefix, StaysAsItIsWhenAPolicyActsOnIt) {
  read_and_free(half_, "other");
  SequenceKv exact = read({});
  const std::vector<KvFormat> before = formats_of(exact);
  const std::vector<BlockId> blocks(exact.table(0).blocks().begin(), exact.table(0).blocks().end());
  for (const double budget : {0.5, 0.3}) {
    SequenceKv behind = read({.policy = &ladder_policy(), .budget_share = budget});
    EXPECT_GT(num_cached_, 0);
    EXPECT_FALSE(behind.is_borrowing());
    EXPECT_EQ(formats_of(exact), before);
    manager_.free(behind);
  }
  manager_.free(exact);
  exact = read({});
  EXPECT_EQ(num_cached_, kPromptTokens - kTokensPerBlock);
  EXPECT_TRUE(std::ranges::equal(exact.table(0).blocks().first(19), std::span(blocks).first(19)));
}

TEST_F(ExactPrefix, OfAnotherSaltOrAnotherAdapterIsNotFound) {
  read_and_free(half_, "other");
  const SequenceKv exact = read({}, "mine");
  read_and_free(half_, "yours");
  EXPECT_EQ(num_cached_, 0);
  KvPolicySettings adapted = half_;
  adapted.weights_version = 7;
  read_and_free(adapted, "mine");
  EXPECT_EQ(num_cached_, 0);
}

TEST_F(ExactPrefix, IsNotFoundWithoutTheAttentionThatAPolicyKnows) {
  const SequenceKv unasked = read({}, "before");  // nobody has asked yet
  read_and_free(half_, "before");
  EXPECT_EQ(num_cached_, 0);
  const SequenceKv uneven = read({}, "uneven", kChunkTokens + kTokensPerBlock);
  read_and_free(half_, "uneven");
  EXPECT_EQ(num_cached_, 0);
  read_and_free({.policy = &uniform_policy(), .budget_share = 0.5}, "uneven");  // it looks at none
  EXPECT_EQ(num_cached_, 3 * kChunkTokens);
}

// Exact requests that come later find all of it, and so never pay attention to it again.
TEST_F(ExactPrefix, IsFoundWhereTheFirstRequestWithABudgetKeptItsAttention) {
  const SequenceKv unasked = read({});
  read_and_free(half_);
  ASSERT_EQ(num_cached_, 0);
  const KvPolicySettings less = {.policy = &ladder_policy(), .budget_share = 0.4};
  const SequenceKv alone = read(less, "alone");
  const SequenceKv behind = read(less);
  EXPECT_EQ(num_cached_, 2 * kChunkTokens);
  EXPECT_EQ(formats_of(behind), formats_of(alone));
}

TEST_F(ExactPrefix, IsNotFoundByAPolicyThatActsOnlyOnce) {
  read_and_free(half_, "other");
  const SequenceKv exact = read({});
  KvPolicySettings once = half_;
  once.only_at_tokens = kPromptTokens;
  read_and_free(once);
  EXPECT_EQ(num_cached_, 0);
}

// A later request under the same policy goes on behind all of it.
TEST_F(ExactPrefix, LeavesCopiesThatAreFoundUnderTheSamePolicy) {
  read_and_free(half_, "other");
  const SequenceKv exact = read({});
  read_and_free(half_);
  ASSERT_EQ(num_cached_, 3 * kChunkTokens);
  const SequenceKv again = read(half_);
  EXPECT_EQ(num_cached_, kPromptTokens - kTokensPerBlock);
}

}  // namespace
}  // namespace kvasir::kv::exact_prefix_test
