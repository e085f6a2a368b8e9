#include "backend/machine_limits.h"

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "kernels/isa.h"

namespace kvasir::backend::machine_limits_test {
namespace {

std::vector<const kernels::ProbeLoops*> host_loops() {
  std::vector<const kernels::ProbeLoops*> loops;
  for (const kernels::Isa& isa : kernels::host_isas()) {
    if (loops.empty() || loops.back() != isa.probe_loops) loops.push_back(isa.probe_loops);
  }
  return loops;
}

TEST(ProbeLoops, ReadEveryByte) {
  alignas(64) unsigned char data[3 * kernels::kReadGranuleBytes] = {};
  for (const kernels::ProbeLoops* loops : host_loops()) {
    EXPECT_EQ(loops->read(data, sizeof data), 0u);
    for (std::size_t i = 0; i < sizeof data; i += 32) {  // the first lane of each load
      data[i] = 1;
      EXPECT_NE(loops->read(data, sizeof data), 0u) << "byte " << i;
      data[i] = 0;
    }
  }
}

TEST(ProbeLoops, TakeTimeInProportionToTheirRounds) {
  for (const kernels::ProbeLoops* loops : host_loops()) {
    const auto seconds = [&](std::int64_t num_rounds) {
      double best = 1e9;
      for (int i = 0; i < 5; ++i) {
        const auto begin = std::chrono::steady_clock::now();
        volatile std::int32_t int8_sink = loops->int8_dot(num_rounds);
        volatile float fp32_sink = loops->fp32_fma(num_rounds);
        static_cast<void>(int8_sink);
        static_cast<void>(fp32_sink);
        best = std::min(best,
                        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
      }
      return best;
    };
    const double ratio = seconds(200'000) / seconds(20'000);
    EXPECT_GT(ratio, 5.0);
    EXPECT_LT(ratio, 20.0);
  }
}

TEST(MachineLimits, CoverEveryLevelAndBothKindsOfArithmetic) {
  const auto limits = measure_machine_limits(2);
  ASSERT_TRUE(limits) << limits.error().message;
  EXPECT_EQ(limits->levels.back().level, "DRAM");
  EXPECT_EQ(limits->read_gb_s, limits->levels.back().all_threads_gb_s);
  EXPECT_GT(limits->read_gb_s, 0.1);
  EXPECT_GT(limits->int8_gmac_s, 0.1);
  EXPECT_GT(limits->fp32_gflop_s, 0.1);
}

}  // namespace
}  // namespace kvasir::backend::machine_limits_test
