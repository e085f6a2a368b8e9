#include "runtime/head_plan.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <vector>

namespace kvasir::runtime::head_plan_test {
namespace {

using sampling::AllowedTokens;
using Reads = HeadPlan::Reads;

std::vector<std::uint64_t> words_of(std::initializer_list<TokenId> tokens, std::size_t num_words = 100) {
  std::vector<std::uint64_t> words(num_words);
  for (const TokenId token : tokens) words[static_cast<std::size_t>(token) / 64] |= std::uint64_t{1} << (token % 64);
  return words;
}
std::vector<std::int32_t> list(std::span<const std::int32_t> values) { return {values.begin(), values.end()}; }

TEST(HeadPlan, GivesRowsOfFewTokensTheirGroupsAlone) {
  HeadPlan plan(400);
  const auto words = words_of({0, 15, 16, 200, 6399, 6390});
  plan.clear();
  plan.add(7, Reads::kAll, AllowedTokens::of(words));
  plan.decide();
  EXPECT_TRUE(plan.whole().empty());
  EXPECT_TRUE(plan.searched().empty());
  ASSERT_EQ(plan.num_parts(), 1u);
  EXPECT_EQ(plan.part(0).row, 7);
  EXPECT_EQ(list(plan.part(0).groups), (std::vector<std::int32_t>{0, 1, 12, 399}));
  EXPECT_EQ(plan.place(0), 0);
}

TEST(HeadPlan, KeepsTheSearchOfAGreedyRowBesideGuidedOnes) {
  HeadPlan plan(400);
  const auto few = words_of({5}), many = std::vector<std::uint64_t>(100, 0x7fff'ffff'ffff'ffff);
  plan.clear();
  plan.add(0, Reads::kGreatest, AllowedTokens::all());
  plan.add(1, Reads::kNothing, AllowedTokens::of(few));
  plan.add(2, Reads::kAll, AllowedTokens::of(words_of({1, 2})));
  plan.add(3, Reads::kGreatest, AllowedTokens::of(many));
  plan.decide();
  EXPECT_TRUE(plan.whole().empty());
  EXPECT_EQ(list(plan.searched()), (std::vector<std::int32_t>{0, 3}));
  ASSERT_EQ(plan.allowed().size(), 2u);
  EXPECT_TRUE(plan.allowed()[0].empty());
  EXPECT_EQ(plan.allowed()[1].size(), 100u);
  EXPECT_EQ(plan.place(0), 0);
  EXPECT_FALSE(plan.place(1));
  EXPECT_EQ(plan.place(3), 1);
  EXPECT_EQ(plan.place(2), 2);
  EXPECT_TRUE(plan.part_of(2));
  EXPECT_FALSE(plan.part_of(3));
}

TEST(HeadPlan, ReadsTheWholeHeadOnceForRowsThatNeedIt) {
  HeadPlan plan(400);
  std::vector<std::uint64_t> scattered(100, 0x0001'0001'0001'0001);  // 400 tokens in as many groups
  plan.clear();
  plan.add(0, Reads::kGreatest, AllowedTokens::all());
  plan.add(1, Reads::kAll, AllowedTokens::all());
  plan.add(2, Reads::kAll, AllowedTokens::of(scattered));
  plan.add(3, Reads::kAll, AllowedTokens::of(words_of({70})));
  plan.decide();
  EXPECT_EQ(list(plan.whole()), (std::vector<std::int32_t>{0, 1, 2}));
  EXPECT_TRUE(plan.searched().empty());
  EXPECT_EQ(plan.num_parts(), 1u);
  EXPECT_EQ(plan.place(3), 3);
}

TEST(HeadPlan, KnowsNoGroupBeyondTheHead) {
  HeadPlan plan(3);
  plan.clear();
  plan.add(0, Reads::kAll, AllowedTokens::of(words_of({40, 64, 500})));
  plan.decide();
  ASSERT_EQ(plan.num_parts(), 1u);
  EXPECT_EQ(list(plan.part(0).groups), (std::vector<std::int32_t>{2}));
}

}  // namespace
}  // namespace kvasir::runtime::head_plan_test
