#include "engine/engine_counters.h"

#include <gtest/gtest.h>

#include <numeric>

namespace kvasir::engine_counters_test {
namespace {

TEST(EngineCounters, CountAStepInOneBucketOfEachKind) {
  EngineStats stats;
  count_step(stats, 4, 0.05);   // at the bound
  count_step(stats, 5, 0.051);  // above it
  count_step(stats, 1000, 60.0);
  EXPECT_EQ(stats.num_steps, 3);
  EXPECT_EQ(stats.num_stepped_sequences, 1009);
  EXPECT_DOUBLE_EQ(stats.step_seconds_total, 60.101);
  EXPECT_EQ(stats.steps_by_seconds[5], 1);
  EXPECT_EQ(stats.steps_by_seconds[6], 1);
  EXPECT_EQ(stats.steps_by_seconds.back(), 1);
  EXPECT_EQ(stats.steps_by_sequences[2], 1);
  EXPECT_EQ(stats.steps_by_sequences[3], 1);
  EXPECT_EQ(stats.steps_by_sequences.back(), 1);
  EXPECT_EQ(std::accumulate(stats.steps_by_seconds.begin(), stats.steps_by_seconds.end(), std::int64_t{0}),
            3);
}

}  // namespace
}  // namespace kvasir::engine_counters_test
