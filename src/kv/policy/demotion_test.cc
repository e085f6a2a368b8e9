// The changes that KvCacheManager's policies make to cells (demotion.cc).
#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "kv/policy/registry.h"
#include "kv/testing/manager_under_test.h"

namespace kvasir::kv::demotion_test {
namespace {

// A prompt's budget is its own from the first token on: its beginning stays fine as long as there is room.
TEST(Demotion, GivesTheBeginningOfAPromptTheBudgetOfAllOfIt) {
  constexpr std::int32_t kPromptTokens = 32 * kTokensPerBlock;
  const std::vector<TokenId> tokens = iota_tokens(kPromptTokens);
  for (const bool is_share_of_present : {false, true}) {
    SCOPED_TRACE(is_share_of_present);
    KvCacheManager manager = make_manager({{.num_blocks = 80, .cells_per_block = 2}});
    SequenceKv kv = manager.open(
        "", false, kPromptTokens,
        {.policy = &uniform_policy(), .budget_share = 0.5, .is_share_of_present = is_share_of_present});
    for (const std::int32_t num_computed_tokens : {kPromptTokens / 4, kPromptTokens}) {
      ASSERT_TRUE(manager.allocate(kv, num_computed_tokens));
      manager.commit(kv, tokens, num_computed_tokens);
      manager.demotion().begin();
      manager.demotion().demote(kv, num_computed_tokens, kPromptTokens);
      manager.demotion().end();
      manager.forget_conversions();
      const bool is_fine = manager.cells().at(0, kv.table(0)[1], 0).format() == KvFormat::kF16;
      EXPECT_EQ(is_fine, num_computed_tokens < kPromptTokens && !is_share_of_present);
    }
    EXPECT_LE(kv.bytes_use.last_share(), 0.5);
    manager.free(kv);
  }
}

// A prompt fills the memory to its end before its policy is asked.
void fill_memory_and_demote(KvCacheManager& manager, SequenceKv& kv, std::int32_t num_tokens) {
  ASSERT_TRUE(manager.allocate(kv, num_tokens));
  ASSERT_FALSE(manager.allocate(kv, num_tokens + 1));
  manager.commit(kv, iota_tokens(num_tokens), num_tokens);
  manager.demotion().begin();
  manager.demotion().demote(kv, num_tokens, num_tokens);
  manager.demotion().end();
}

TEST(Demotion, APolicyKeepsItsBudgetInAPoolWithoutAFreePage) {
  constexpr std::int32_t kPromptTokens = 512 * kTokensPerBlock;
  KvCacheManager manager = make_manager({{.num_blocks = 512, .cells_per_block = 30}});
  SequenceKv kv = manager.open("", false, kPromptTokens, {.policy = &uniform_policy(), .budget_share = 0.3});
  fill_memory_and_demote(manager, kv, kPromptTokens);
  EXPECT_LE(kv.bytes_use.last_share(), 0.3);
  EXPECT_LE(manager.cells().arena().reserved_bytes(), manager.cells().arena().capacity_bytes() * 2 / 5);
}

// Where some heads keep f16 no page runs empty by itself.
TEST(Demotion, APolicyThatLeavesSomeHeadsAloneKeepsItsBudgetInAPoolWithoutAFreePage) {
  constexpr std::int32_t kPromptTokens = 512 * kTokensPerBlock;
  LayerGroup group = {.num_blocks = 512, .cells_per_block = 30};
  group.cell_weights.assign(30, 0.1f);
  for (std::size_t cell = 0; cell < 30; cell += 3) group.cell_weights[cell] = 1000.0f;
  KvCacheManager manager = make_manager({group});
  SequenceKv kv = manager.open("", false, kPromptTokens, {.policy = &ladder_policy(), .budget_share = 0.5});
  fill_memory_and_demote(manager, kv, kPromptTokens);
  EXPECT_LE(kv.bytes_use.last_share(), 0.5);
  std::int32_t num_fine = 0;
  for (const BlockId block : kv.table(0).blocks()) {
    num_fine += manager.cells().at(0, block, 0).format() == KvFormat::kF16 ? 1 : 0;
  }
  EXPECT_EQ(num_fine, 512);
}

// A window frees by itself: what a policy did there would be counted twice.
TEST(Demotion, LeavesLayersWithAWindowToThemselves) {
  constexpr std::int32_t kNumTokens = 12 * kTokensPerBlock;
  KvCacheManager manager = make_manager({{.num_blocks = 24}, {.num_blocks = 24, .window_tokens = 128}});
  SequenceKv kv = manager.open("", false, kNumTokens, {.policy = find_policy("k8v4")});
  ASSERT_TRUE(manager.allocate(kv, kNumTokens));
  manager.commit(kv, iota_tokens(kNumTokens), kNumTokens);
  manager.demotion().begin();
  manager.demotion().demote(kv, kNumTokens, kNumTokens);
  manager.demotion().end();
  const auto format = [&](std::int32_t group) {
    return manager.cells().at(group, kv.table(group)[kv.table(1).first_held()], 0).format();
  };
  EXPECT_EQ(format(0), KvFormat::kK8V4);
  EXPECT_EQ(format(1), KvFormat::kF16);
}

class SharedUnderAPolicy : public testing::Test {
 protected:
  static constexpr std::int32_t kNumTokens = 12 * kTokensPerBlock;

  // The same tokens under a policy: the second one finds the first one's blocks.
  SequenceKv hold(const KvPolicySettings& settings) {
    SequenceKv kv = manager_.open("", true, kNumTokens, settings);
    const std::int32_t num_cached = manager_.match_prefix(kv, tokens_);
    EXPECT_TRUE(manager_.allocate(kv, kNumTokens));
    manager_.commit(kv, tokens_, kNumTokens);
    num_cached_ = num_cached;
    return kv;
  }
  void act(std::vector<SequenceKv*> planning, std::vector<SequenceKv*> pending) {
    manager_.demotion().begin();
    for (SequenceKv* kv : planning) manager_.demotion().demote(*kv, kNumTokens, kNumTokens);
    manager_.demotion().demote_shared(pending);
    manager_.demotion().end();
    manager_.forget_conversions();
  }
  KvFormat format_of(const SequenceKv& kv, std::int32_t block) const {
    return manager_.cells().at(0, kv.table(0)[block], 0).format();
  }

  KvCacheManager manager_ = make_manager({{.num_blocks = 40, .cells_per_block = 2}});
  const std::vector<TokenId> tokens_ = iota_tokens(kNumTokens);
  const KvPolicySettings k8v4_ = {.policy = find_policy("k8v4")};
  std::int32_t num_cached_ = 0;
};

TEST_F(SharedUnderAPolicy, ABlockWaitsForAllWhoHoldIt) {
  SequenceKv first = hold(k8v4_), second = hold(k8v4_);
  ASSERT_EQ(num_cached_, kNumTokens - kTokensPerBlock);
  act({&first}, {&first, &second});
  EXPECT_EQ(format_of(first, 2), KvFormat::kF16);
  act({&second}, {&first, &second});
  EXPECT_EQ(format_of(first, 2), KvFormat::kK8V4);
  EXPECT_TRUE(first.pending_demotions.empty());
  EXPECT_TRUE(second.pending_demotions.empty());
}

TEST_F(SharedUnderAPolicy, TheMostCarefulHolderDecides) {
  SequenceKv first = hold(k8v4_), second = hold(k8v4_);
  first.policy.policy = find_policy("k3v3");  // as if the fingerprint did not keep them apart
  act({&first, &second}, {&first, &second});
  EXPECT_EQ(format_of(first, 2), KvFormat::kK8V4);
}

TEST_F(SharedUnderAPolicy, AWishIsGrantedWhenTheOthersAreGone) {
  SequenceKv first = hold(k8v4_), second = hold(k8v4_);
  act({&first}, {&first, &second});
  manager_.free(second);
  act({}, {&first});
  EXPECT_EQ(format_of(first, 2), KvFormat::kK8V4);
}

// An old wish may be coarser than what the policy wants by now.
TEST_F(SharedUnderAPolicy, AWishEndsWhenItsHolderPlansAloneAgain) {
  SequenceKv first = hold({.policy = find_policy("k3v3")}), second = hold({.policy = find_policy("k3v3")});
  act({&first}, {&first, &second});
  ASSERT_FALSE(first.pending_demotions.empty());
  manager_.free(second);
  first.policy.policy = find_policy("k8v4");
  first.num_planned_blocks = 0;
  act({&first}, {&first});
  EXPECT_EQ(format_of(first, 2), KvFormat::kK8V4);
  EXPECT_TRUE(first.pending_demotions.empty());
}

TEST_F(SharedUnderAPolicy, AFrozenHolderAgreesToNothing) {
  SequenceKv first = hold(k8v4_), second = hold(k8v4_);
  act({&first}, {&first, &second});
  Demotion::freeze(first);
  EXPECT_TRUE(first.pending_demotions.empty());
  act({&second}, {&second});
  act({&first}, {&first, &second});
  EXPECT_EQ(format_of(first, 2), KvFormat::kF16);
  EXPECT_GT(manager_.bytes_missing(first, 2 * kNumTokens, 16), manager_.bytes_missing(second, 2 * kNumTokens, 16) / 2)
      << "it gets no smaller";
  manager_.free(first);
  act({}, {&second});
  EXPECT_EQ(format_of(second, 2), KvFormat::kK8V4);
}

TEST_F(SharedUnderAPolicy, WhoAskedForExactKvSharesWithNobodyLossy) {
  SequenceKv lossy = hold(k8v4_);
  act({&lossy}, {&lossy});
  const SequenceKv exact = hold({});
  EXPECT_EQ(num_cached_, 0);
  EXPECT_EQ(format_of(exact, 2), KvFormat::kF16);
}

}  // namespace
}  // namespace kvasir::kv::demotion_test
