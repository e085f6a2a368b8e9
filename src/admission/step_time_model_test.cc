#include "admission/step_time_model.h"

#include <gtest/gtest.h>

#include <random>

namespace kvasir::admission::step_time_model_test {
namespace {

StepWork work_of(std::int32_t num_decoding, std::int32_t context, std::int32_t num_chunk_tokens,
                 std::int32_t first_position) {
  StepWork work;
  for (std::int32_t i = 0; i < num_decoding; ++i) work.add_decoding(context);
  work.add_chunk(first_position, num_chunk_tokens);
  return work;
}

// A machine: 5 ms of weights, 0.4 a stream, 0.3 a token, 0.2 a thousand keys.
double true_ms(const StepWork& work, double slower = 1.0) {
  return slower * (5.0 + 0.4 * work.num_decoding + 0.3 * work.num_chunk_tokens +
                   2e-4 * static_cast<double>(work.num_attended_tokens));
}

class StepTimes : public testing::Test {
 protected:
  void run(int num_steps, double slower = 1.0) {
    std::uniform_int_distribution<std::int32_t> streams(0, 16);
    std::uniform_int_distribution<std::int32_t> tokens(0, 512);
    std::normal_distribution<double> noise(1.0, 0.05);
    for (int i = 0; i < num_steps; ++i) {
      const StepWork work = work_of(streams(random_), 4 * tokens(random_), tokens(random_),
                                    8 * tokens(random_));
      model_.observe(work, true_ms(work, slower) * noise(random_));
    }
  }
  void expect_near(const StepWork& work, double slower = 1.0) const {
    EXPECT_NEAR(model_.predict_ms(work) / true_ms(work, slower), 1.0, 0.15);
  }

  std::mt19937 random_{7};
  StepTimeModel model_;
};

TEST_F(StepTimes, TellWhatAKeyTakesBesideAToken) {
  EXPECT_EQ(model_.key_to_token_ratio(), 0.0);
  run(400);
  EXPECT_NEAR(model_.key_to_token_ratio(), 2e-4 / 0.3, 0.15 * 2e-4 / 0.3);
}

TEST_F(StepTimes, AreLearnedFromAFewSteps) {
  run(50);
  expect_near(work_of(16, 1000, 0, 0));
  expect_near(work_of(4, 100, 256, 0));
  expect_near(work_of(1, 100, 512, 4000));
}

TEST_F(StepTimes, FollowAMachineThatBecomesSlower) {
  run(1000);
  run(1000, 2.5);
  expect_near(work_of(16, 1000, 0, 0), 2.5);
  expect_near(work_of(4, 100, 256, 0), 2.5);
}

// An hour of nothing but decoding says nothing about prompts, and must not unlearn them.
TEST_F(StepTimes, OfPromptsAreKeptWhileNoneCome) {
  run(100);
  std::normal_distribution<double> noise(1.0, 0.05);
  for (int i = 0; i < 100'000; ++i) {
    const StepWork work = work_of(8, 500, 0, 0);
    model_.observe(work, true_ms(work) * noise(random_));
  }
  expect_near(work_of(8, 500, 0, 0));
  expect_near(work_of(8, 500, 256, 0));
}

TEST_F(StepTimes, SayHowLongAChunkMayBe) {
  run(100);
  const StepWork decoding = work_of(8, 500, 0, 0);
  for (const std::int32_t first : {0, 3000}) {
    const std::int32_t tokens = model_.chunk_within(60.0, decoding, first, 512);
    StepWork whole = decoding;
    whole.add_chunk(first, tokens);
    EXPECT_NEAR(true_ms(whole), 60.0, 6.0) << tokens;
  }
  EXPECT_LT(model_.chunk_within(60.0, decoding, 3000, 512), model_.chunk_within(60.0, decoding, 0, 512));
  EXPECT_EQ(model_.chunk_within(1000.0, decoding, 0, 300), 300);
  EXPECT_EQ(model_.chunk_within(5.0, decoding, 0, 300), 0);
}

TEST_F(StepTimes, AreNothingBeforeTheFirstStep) {
  EXPECT_EQ(model_.predict_ms(work_of(8, 500, 300, 0)), 0.0);
  model_.observe(work_of(8, 500, 300, 0), 0.0);
  EXPECT_EQ(model_.chunk_within(1.0, work_of(8, 500, 0, 0), 0, 512), 512);
}

}  // namespace
}  // namespace kvasir::admission::step_time_model_test
