#include "base/cpu_load.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace kvasir::cpu_load_test {
namespace {

TEST(CpuLoad, CountsTheProcessorsThatAreNamed) {
  const std::string stat =
      "cpu  900 0 0 900 0 0 0 0 0 0\n"
      "cpu0 10 1 2 50 7 3 4 5 99 99\n"
      "cpu1 100 0 0 100 0 0 0 0 0 0\n"
      "cpu10 1 0 0 1\n"
      "intr 5\n";
  const auto first = parse_cpu_ticks(stat, {0});
  ASSERT_TRUE(first);
  EXPECT_EQ(first->busy, 10 + 1 + 2 + 3 + 4 + 5);
  EXPECT_EQ(first->total, first->busy + 50 + 7);
  EXPECT_EQ(parse_cpu_ticks(stat, {1, 10})->total, 202);
  EXPECT_FALSE(parse_cpu_ticks(stat, {7}));
  EXPECT_FALSE(parse_cpu_ticks("", {0}));
}

TEST(CpuLoad, IsAShare) {
  const CpuLoadMeter meter;
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  const auto share = meter.others_share();
  ASSERT_TRUE(share);
  EXPECT_GE(*share, 0.0);
  EXPECT_LE(*share, 1.0);
}

}  // namespace
}  // namespace kvasir::cpu_load_test
