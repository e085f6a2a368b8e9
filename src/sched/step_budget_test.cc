#include "sched/step_budget.h"

#include <gtest/gtest.h>

namespace kvasir::sched::step_budget_test {
namespace {

StepWork decoding(std::int32_t count) {
  StepWork work;
  for (std::int32_t i = 0; i < count; ++i) work.add_decoding(100);
  return work;
}

// One millisecond a token of a prompt, nothing else.
StepTimeModel one_ms_a_token() {
  StepTimeModel times;
  for (const std::int32_t tokens : {100, 200, 400}) {
    StepWork work;
    work.num_chunk_tokens = tokens;
    times.observe(work, tokens);
  }
  return times;
}

TEST(StepBudget, SetsDecodingTokensAside) {
  const StepTimeModel times;
  StepBudget budget({.max_tokens = 10, .max_chunk_tokens = 100}, decoding(4), times);
  EXPECT_EQ(budget.take_chunk(50, 0), 6);
  EXPECT_FALSE(budget.has_room());
  EXPECT_EQ(budget.take_chunk(50, 0), 0);
}

TEST(StepBudget, CapsEachChunk) {
  const StepTimeModel times;
  StepBudget budget({.max_tokens = 10, .max_chunk_tokens = 4}, decoding(0), times);
  EXPECT_EQ(budget.take_chunk(50, 0), 4);
  EXPECT_EQ(budget.take_chunk(3, 0), 3);
  EXPECT_EQ(budget.take_chunk(50, 0), 3);
}

TEST(StepBudget, HasNoRoomWhenAllDecode) {
  const StepTimeModel times;
  const StepBudget budget({.max_tokens = 4, .max_chunk_tokens = 4}, decoding(4), times);
  EXPECT_FALSE(budget.has_room());
}

TEST(StepBudget, KeepsToTheTimeWhileSomebodyDecodes) {
  const StepTimeModel times = one_ms_a_token();
  StepBudget budget({.max_tokens = 512, .max_chunk_tokens = 512, .max_ms = 60.0}, decoding(2), times);
  EXPECT_EQ(budget.take_chunk(30, 0), 30);
  EXPECT_EQ(budget.take_chunk(500, 0), 16);  // 28 ms are left: 48 rows in all
  EXPECT_FALSE(budget.has_room());
  EXPECT_EQ(budget.take_chunk(500, 0), 0);
}

TEST(StepBudget, HasMoreTimeForWhoIsOwed) {
  const StepTimeModel times = one_ms_a_token();
  const StepLimits limits{
      .max_tokens = 512, .max_chunk_tokens = 512, .max_ms = 50.0, .underserved_ms = 100.0};
  StepBudget budget(limits, decoding(2), times);
  EXPECT_EQ(StepBudget(limits, decoding(2), times).take_chunk(500, 0), 30);
  EXPECT_EQ(budget.take_chunk(500, 0, true), 94);
  EXPECT_FALSE(budget.has_room()) << "not for others";
}

TEST(StepBudget, KeepsToTheTimeWhenNobodyDecodesToo) {
  const StepTimeModel times = one_ms_a_token();
  StepBudget budget({.max_tokens = 512, .max_chunk_tokens = 512, .max_ms = 60.5}, decoding(0), times);
  EXPECT_EQ(budget.take_chunk(500, 0), 48);
}

// Streams that take longer than the limit by themselves do not keep prompts from advancing.
TEST(StepBudget, GivesTheFirstChunkATileAtLeast) {
  const StepTimeModel times = one_ms_a_token();
  StepBudget budget({.max_tokens = 512, .max_chunk_tokens = 512, .max_ms = 0.5}, decoding(2), times);
  EXPECT_EQ(budget.take_chunk(500, 0), 16);
  EXPECT_EQ(budget.take_chunk(500, 0), 0);
}

}  // namespace
}  // namespace kvasir::sched::step_budget_test
