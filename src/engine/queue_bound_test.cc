#include "engine/queue_bound.h"

#include <gtest/gtest.h>

#include <string>

namespace kvasir {
namespace {

constexpr QueueLimits kLimits{.num_seats = 2, .num_requests = 6, .num_prompt_tokens = 100};

class QueueBoundTest : public ::testing::Test {
 protected:
  // How many of a flood of single requests are let in.
  int fill(const std::string& tenant, std::int32_t priority = 0) {
    int num_entered = 0;
    for (int i = 0; i < 100 && bound_.check({tenant, priority, 1, 1}, load_); ++i) {
      bound_.enter(tenant);
      ++num_entered;
    }
    return num_entered;
  }
  void let_wait(const std::string& tenant, std::int64_t num_tokens) {
    load_.group(tenant, 0, 0.0).prompts.num_tokens += num_tokens;
  }

  QueueBound bound_{kLimits};
  sched::LoadSnapshot load_;
};

TEST_F(QueueBoundTest, ATenantAloneHasAllOfIt) {
  EXPECT_EQ(fill("a"), 8);
  const Status refused = bound_.check({"a", 0, 1, 1}, load_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kUnavailable);
  EXPECT_EQ(refused.error().message, "queue: 8 requests are waiting or running and 1 came, the limit is 8");
  bound_.leave("a");
  EXPECT_EQ(fill("a"), 1);
}

TEST_F(QueueBoundTest, AQueueThatOneTenantHasFilledIsOpenToTheOthers) {
  fill("a");
  EXPECT_EQ(fill("b"), 4);
  EXPECT_EQ(fill("c"), 2);
  EXPECT_EQ(fill("a"), 0);
  EXPECT_EQ(bound_.num_unfinished(), 14);
  EXPECT_EQ(
      bound_.check({"c", 0, 1, 1}, load_).error().message,
      "queue: 14 requests are waiting or running and 1 came, the limit is 8, or 2 for each of 3 keys with "
      "2 of this one");
}

TEST_F(QueueBoundTest, WhoHasLeftTakesNoPart) {
  for (int i = 0; i < 4; ++i) bound_.enter("b");
  for (int i = 0; i < 4; ++i) bound_.leave("b");
  EXPECT_EQ(fill("a"), 8);
}

TEST_F(QueueBoundTest, RequestsBehindPriorityZeroFillHalfOfIt) {
  EXPECT_EQ(fill("a", 1), 2 + 3);
  EXPECT_EQ(fill("a", 0), 3);
}

TEST_F(QueueBoundTest, HoweverManyTenantsThereAreEachMayHaveOne) {
  fill("a");
  for (int i = 0; i < 20; ++i) EXPECT_GE(fill("tenant" + std::to_string(i)), 1);
}

TEST_F(QueueBoundTest, WhatNeverFitsIsNotToBeTriedAgain) {
  EXPECT_EQ(bound_.check({"a", 0, 9, 9}, load_).error().kind, ErrorKind::kUsage);
  EXPECT_TRUE(bound_.check({"a", 0, 8, 8}, load_));
  bound_.enter("a");
  EXPECT_EQ(bound_.check({"a", 0, 8, 8}, load_).error().kind, ErrorKind::kUnavailable);
}

TEST_F(QueueBoundTest, PromptTokensHaveTheSameRules) {
  let_wait("a", 95);
  EXPECT_TRUE(bound_.check({"a", 0, 1, 5}, load_));
  EXPECT_FALSE(bound_.check({"a", 0, 1, 6}, load_));
  EXPECT_FALSE(bound_.check({"a", 1, 1, 5}, load_));
  bound_.enter("a");
  let_wait("b", 40);
  EXPECT_TRUE(bound_.check({"b", 0, 1, 10}, load_));
  const Status refused = bound_.check({"b", 0, 1, 11}, load_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(
      refused.error().message,
      "queue: 135 prompt tokens are waiting and 11 came, the limit is 100, or 50 for each of 2 keys with "
      "40 of this one");
}

TEST_F(QueueBoundTest, APromptOfAnyLengthMayWaitWhereNoOtherOfItsTenantDoes) {
  let_wait("a", 100);
  EXPECT_TRUE(bound_.check({"b", 0, 1, 1000}, load_));
  EXPECT_FALSE(bound_.check({"a", 0, 1, 1}, load_));
}

TEST_F(QueueBoundTest, NoLimitOfTokensIsNone) {
  const QueueBound bound({.num_seats = 2, .num_requests = 6, .num_prompt_tokens = 0});
  let_wait("a", 1'000'000'000);
  EXPECT_TRUE(bound.check({"a", 0, 1, 1'000'000}, load_));
}

}  // namespace
}  // namespace kvasir
