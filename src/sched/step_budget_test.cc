#include "sched/step_budget.h"

#include <gtest/gtest.h>

namespace kvasir::sched {
namespace {

TEST(StepBudget, SetsDecodingTokensAside) {
  StepBudget budget(10, 100, 4);
  EXPECT_EQ(budget.take_chunk(50), 6);
  EXPECT_FALSE(budget.has_room());
  EXPECT_EQ(budget.take_chunk(50), 0);
}

TEST(StepBudget, CapsEachChunk) {
  StepBudget budget(10, 4, 0);
  EXPECT_EQ(budget.take_chunk(50), 4);
  EXPECT_EQ(budget.take_chunk(3), 3);
  EXPECT_EQ(budget.take_chunk(50), 3);
}

TEST(StepBudget, TakesBackWhatDoesNotRun) {
  StepBudget budget(1, 100, 1);
  EXPECT_FALSE(budget.has_room());
  budget.give_back(1);
  EXPECT_EQ(budget.take_chunk(50), 1);
}

TEST(StepBudget, HasNoRoomWhenAllDecode) {
  StepBudget budget(4, 4, 4);
  EXPECT_FALSE(budget.has_room());
}

}  // namespace
}  // namespace kvasir::sched
