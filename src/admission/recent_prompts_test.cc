#include "admission/recent_prompts.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

namespace kvasir::admission::recent_prompts_test {
namespace {

std::vector<TokenId> tokens(std::int32_t count, TokenId first = 0) {
  std::vector<TokenId> ids(static_cast<std::size_t>(count));
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

TEST(RecentPrompts, FindsWholeBlocksAndLeavesATokenToCompute) {
  RecentPrompts prompts({1, 2});
  EXPECT_EQ(prompts.add("ann", "", tokens(64)), 0);
  EXPECT_EQ(prompts.find("", tokens(64)), 48);
  EXPECT_EQ(prompts.find("", tokens(65)), 48);  // the fourth block was not whole with a token behind it
  EXPECT_EQ(prompts.find("", tokens(40)), 32);
  EXPECT_EQ(prompts.add("ann", "", tokens(100)), 48);
  EXPECT_EQ(prompts.find("", tokens(65)), 64);
  EXPECT_EQ(prompts.find("", tokens(64, 1)), 0);
  EXPECT_EQ(prompts.find("", {}), 0);
}

TEST(RecentPrompts, NamespacesShareNothing) {
  RecentPrompts prompts({1, 2});
  prompts.add("ann", "a", tokens(64));
  EXPECT_EQ(prompts.find("b", tokens(64)), 0);
}

TEST(RecentPrompts, ForgetsWhatCameLongestAgo) {
  RecentPrompts prompts({1, 2}, 4);
  for (int i = 0; i < 10; ++i) prompts.add("ann", "", tokens(33));  // its blocks are in once
  prompts.add("ann", "", tokens(33, 1000));
  EXPECT_EQ(prompts.add("ann", "", tokens(33)), 32);
  prompts.add("ann", "", tokens(33, 2000));
  EXPECT_EQ(prompts.find("", tokens(33)), 32);
  EXPECT_EQ(prompts.find("", tokens(33, 1000)), 0);
  EXPECT_EQ(prompts.find("", tokens(33, 2000)), 32);
}

TEST(RecentPrompts, ForgetsOfWhoeverHasTheMostAlsoWhenItIsGone) {
  RecentPrompts prompts({1, 2}, 100);
  prompts.add("gone", "g", tokens(1617));
  for (int i = 0; i < 10; ++i) prompts.add("few" + std::to_string(i), std::to_string(i), tokens(17));
  for (int turn = 0; turn < 3; ++turn) prompts.add("chat", "c", tokens(641));
  EXPECT_EQ(prompts.find("c", tokens(641)), 640);
  EXPECT_EQ(prompts.find("g", tokens(1617)), 800) << "the beginning is forgotten last";
}

TEST(RecentPrompts, ATenantWithManyForgetsItsOwn) {
  RecentPrompts prompts({1, 2}, 8);
  for (TokenId first = 0; first < 10'000; first += 1000) prompts.add("many", "m", tokens(33, first));
  prompts.add("few", "f", tokens(49));
  for (TokenId first = 0; first < 10'000; first += 1000) prompts.add("many", "m", tokens(33, first));
  EXPECT_EQ(prompts.find("f", tokens(49)), 48);
  EXPECT_EQ(prompts.find("m", tokens(33, 9000)), 32);
  EXPECT_EQ(prompts.find("m", tokens(33, 1000)), 0);
}

}  // namespace
}  // namespace kvasir::admission::recent_prompts_test
