#include "runtime/faster_way.h"

#include <gtest/gtest.h>

namespace kvasir::runtime {
namespace {

// How often each way ran in `num_runs` that take such times.
std::array<int, 2> run(FasterWay& choice, int num_runs, std::array<double, 2> nanoseconds, int interrupted_every = 0) {
  std::array<int, 2> counts{};
  for (int i = 0; i < num_runs; ++i) {
    const std::size_t way = choice.next();
    ++counts.at(way);
    const bool is_interrupted = interrupted_every > 0 && i % interrupted_every == 0;
    choice.observe(way, nanoseconds.at(way) * (is_interrupted ? 50.0 : 1.0));
  }
  return counts;
}

TEST(FasterWay, TriesBothAndTakesTheFaster) {
  for (const std::size_t faster : {0, 1}) {
    FasterWay choice;
    std::array<double, 2> times = {20.0, 20.0};
    times.at(faster) = 10.0;
    EXPECT_EQ(run(choice, 2 * FasterWay::kTrials, times).at(faster), FasterWay::kTrials);
    EXPECT_LE(run(choice, 10 * FasterWay::kPeriod, times).at(1 - faster), 11);
  }
}

TEST(FasterWay, LooksPastInterruptedRuns) {
  FasterWay choice;
  EXPECT_LE(run(choice, 1000, {10.0, 12.0}, 5)[1], 20);
}

TEST(FasterWay, LearnsThatTimesHaveChanged) {
  FasterWay choice;
  run(choice, 1000, {10.0, 20.0});
  EXPECT_EQ(run(choice, 8, {30.0, 20.0})[1], 4) << "four runs of seven make a median";
  EXPECT_GE(run(choice, 1000, {30.0, 20.0})[1], 990);
  run(choice, 8 * FasterWay::kPeriod, {10.0, 20.0});  // only the runs of the slower way can tell
  EXPECT_LE(run(choice, 1000, {10.0, 20.0})[1], 10);
}

}  // namespace
}  // namespace kvasir::runtime
