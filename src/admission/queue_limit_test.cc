#include "admission/queue_limit.h"

#include <gtest/gtest.h>

#include <string>

namespace kvasir::admission::queue_limit_test {
namespace {

constexpr QueueLimitConfig kLimits{.num_seats = 2, .num_requests = 6, .num_prompt_tokens = 100};

class QueueLimitTest : public ::testing::Test {
 protected:
  // How many of a flood of single requests are let in.
  int fill(const std::string& tenant, std::int32_t priority = 0) {
    int num_admitted = 0;
    for (int i = 0; i < 100 && limit_.check({tenant, priority, 1, 1}, load_); ++i) {
      limit_.admit(tenant, "");
      ++num_admitted;
    }
    return num_admitted;
  }
  void let_wait(const std::string& tenant, std::int64_t num_tokens) {
    load_.group(tenant, 0, 0.0).prompts.num_tokens += num_tokens;
  }

  QueueLimit limit_{kLimits};
  LoadSnapshot load_;
};

TEST_F(QueueLimitTest, ATenantAloneHasAllOfIt) {
  EXPECT_EQ(fill("a"), 8);
  const Status refused = limit_.check({"a", 0, 1, 1}, load_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kUnavailable);
  EXPECT_EQ(refused.error().message, "queue: 8 requests are waiting or running and 1 came, the limit is 8 (--max-queue 6 beside 2 that run)");
  limit_.leave("a", "");
  EXPECT_EQ(fill("a"), 1);
}

TEST_F(QueueLimitTest, AQueueThatOneTenantHasFilledIsOpenToTheOthers) {
  fill("a");
  EXPECT_EQ(fill("b"), 4);
  EXPECT_EQ(fill("c"), 2);
  EXPECT_EQ(fill("a"), 0);
  EXPECT_EQ(limit_.num_unfinished(), 14);
  EXPECT_EQ(
      limit_.check({"c", 0, 1, 1}, load_).error().message,
      "queue: 14 requests are waiting or running and 1 came, the limit is 8 (--max-queue 6 beside 2 that run), or 2 for each of 3 keys with "
      "2 of this one");
}

TEST_F(QueueLimitTest, AQueueThatOneAdapterHasFilledIsOpenToOneRequestOfAnother) {
  fill("a");
  let_wait("a", 100);
  EXPECT_FALSE(limit_.check({"a", 0, 1, 1}, load_));
  EXPECT_FALSE(limit_.check({"a", 0, 2, 1, "style"}, load_));
  ASSERT_TRUE(limit_.check({"a", 0, 1, 1, "style"}, load_));
  limit_.admit("a", "style");
  EXPECT_FALSE(limit_.check({"a", 0, 1, 1, "style"}, load_));
  EXPECT_TRUE(limit_.check({"a", 0, 1, 1, "law"}, load_));
  limit_.leave("a", "style");
  EXPECT_TRUE(limit_.check({"a", 0, 1, 1, "style"}, load_));
  EXPECT_EQ(fill("a"), 0);
}

TEST_F(QueueLimitTest, WhoHasLeftTakesNoPart) {
  for (int i = 0; i < 4; ++i) limit_.admit("b", "");
  for (int i = 0; i < 4; ++i) limit_.leave("b", "");
  EXPECT_EQ(fill("a"), 8);
}

TEST_F(QueueLimitTest, RequestsBehindPriorityZeroFillHalfOfIt) {
  EXPECT_EQ(fill("a", 1), 2 + 3);
  EXPECT_EQ(fill("a", 0), 3);
}

TEST_F(QueueLimitTest, HoweverManyTenantsThereAreEachMayHaveOne) {
  fill("a");
  for (int i = 0; i < 20; ++i) EXPECT_GE(fill("tenant" + std::to_string(i)), 1);
}

TEST_F(QueueLimitTest, WhatNeverFitsIsNotToBeTriedAgain) {
  EXPECT_EQ(limit_.check({"a", 0, 9, 9}, load_).error().kind, ErrorKind::kUsage);
  EXPECT_TRUE(limit_.check({"a", 0, 8, 8}, load_));
  limit_.admit("a", "");
  EXPECT_EQ(limit_.check({"a", 0, 8, 8}, load_).error().kind, ErrorKind::kUnavailable);
}

TEST_F(QueueLimitTest, PromptTokensHaveTheSameRules) {
  let_wait("a", 95);
  EXPECT_TRUE(limit_.check({"a", 0, 1, 5}, load_));
  EXPECT_FALSE(limit_.check({"a", 0, 1, 6}, load_));
  EXPECT_FALSE(limit_.check({"a", 1, 1, 5}, load_));
  limit_.admit("a", "");
  let_wait("b", 40);
  EXPECT_TRUE(limit_.check({"b", 0, 1, 10}, load_));
  const Status refused = limit_.check({"b", 0, 1, 11}, load_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(
      refused.error().message,
      "queue: 135 prompt tokens are waiting and 11 came, the limit is 100 (--max-queue-kv), or 50 for each of 2 keys with "
      "40 of this one");
}

TEST_F(QueueLimitTest, APromptOfAnyLengthMayWaitWhereNoOtherOfItsTenantDoes) {
  let_wait("a", 100);
  EXPECT_TRUE(limit_.check({"b", 0, 1, 1000}, load_));
  EXPECT_FALSE(limit_.check({"a", 0, 1, 1}, load_));
}

TEST_F(QueueLimitTest, NoLimitOfTokensIsNone) {
  const QueueLimit bound({.num_seats = 2, .num_requests = 6, .num_prompt_tokens = 0});
  let_wait("a", 1'000'000'000);
  EXPECT_TRUE(bound.check({"a", 0, 1, 1'000'000}, load_));
}

}  // namespace
}  // namespace kvasir::admission::queue_limit_test
