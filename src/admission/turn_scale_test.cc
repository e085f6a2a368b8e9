#include "admission/turn_scale.h"

#include <gtest/gtest.h>

namespace kvasir::admission::turn_scale_test {
namespace {

StepTimeModel with_ms_per_token(double ms_per_token) {
  StepTimeModel model;
  for (const std::int32_t num_tokens : {128, 256, 512, 128, 256, 512}) {
    StepWork work;
    work.add_chunk(0, num_tokens);
    model.observe(work, ms_per_token * num_tokens);
  }
  return model;
}

TEST(TurnScale, IsWholeUntilStepsWereObserved) { EXPECT_EQ(turn_scale({}, 4096, 2000), 1.0); }

TEST(TurnScale, IsWholeWhereAQuantumFitsHalfATarget) {
  EXPECT_EQ(turn_scale(with_ms_per_token(0.2), 4096, 2000), 1.0);
}

TEST(TurnScale, HalvesUntilTheQuantumFits) {
  EXPECT_EQ(turn_scale(with_ms_per_token(0.4), 4096, 2000), 0.5) << "819 of 1,000 ms";
  EXPECT_EQ(turn_scale(with_ms_per_token(0.4), 4096, 1000), 0.25);
  EXPECT_EQ(turn_scale(with_ms_per_token(0.4), 4096, 0), 0.5) << "no target is as one of 2,000 ms";
}

TEST(TurnScale, LeavesASixteenthToTheSlowestMachine) {
  EXPECT_EQ(turn_scale(with_ms_per_token(100), 4096, 2000), 1.0 / 16);
}

}  // namespace
}  // namespace kvasir::admission::turn_scale_test
