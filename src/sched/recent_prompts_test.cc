#include "sched/recent_prompts.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace kvasir::sched {
namespace {

std::vector<TokenId> tokens(std::int32_t count, TokenId first = 0) {
  std::vector<TokenId> ids(static_cast<std::size_t>(count));
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

TEST(RecentPrompts, FindsWholeBlocksAndLeavesATokenToCompute) {
  RecentPrompts prompts({1, 2});
  EXPECT_EQ(prompts.add("", tokens(64)), 0);
  EXPECT_EQ(prompts.find("", tokens(64)), 48);
  EXPECT_EQ(prompts.find("", tokens(65)), 48);  // the fourth block was not whole with a token behind it
  EXPECT_EQ(prompts.find("", tokens(40)), 32);
  EXPECT_EQ(prompts.add("", tokens(100)), 48);
  EXPECT_EQ(prompts.find("", tokens(65)), 64);
  EXPECT_EQ(prompts.find("", tokens(64, 1)), 0);
  EXPECT_EQ(prompts.find("", {}), 0);
}

TEST(RecentPrompts, NamespacesShareNothing) {
  RecentPrompts prompts({1, 2});
  prompts.add("a", tokens(64));
  EXPECT_EQ(prompts.find("b", tokens(64)), 0);
}

TEST(RecentPrompts, ForgetsTheOldest) {
  RecentPrompts prompts({1, 2}, 4);
  prompts.add("", tokens(33));
  prompts.add("", tokens(33));  // its blocks are in twice
  EXPECT_EQ(prompts.find("", tokens(33)), 32);
  prompts.add("", tokens(33, 1000));
  EXPECT_EQ(prompts.find("", tokens(33)), 32);
  prompts.add("", tokens(33, 2000));
  EXPECT_EQ(prompts.find("", tokens(33)), 0);
  EXPECT_EQ(prompts.find("", tokens(33, 1000)), 32);
}

}  // namespace
}  // namespace kvasir::sched
