#include "kv/cells/sequence_scores.h"

#include <gtest/gtest.h>

#include <cmath>

namespace kvasir::kv::sequence_scores_test {
namespace {

StepScores step_of(std::int32_t num_blocks, std::int32_t num_queries, float sum, float greatest) {
  StepScores step{.num_blocks = num_blocks};
  step.num_queries = {num_queries};
  step.sum.assign(static_cast<std::size_t>(num_blocks), sum);
  step.greatest.assign(static_cast<std::size_t>(num_blocks), greatest);
  return step;
}

TEST(SequenceScores, FadeByWhatWasSeenSince) {
  SequenceScores scores({.is_kept = true, .decay = 0.5f}, 1, 64, 1);
  scores.add(step_of(1, 1, 8.0f, 0.0f));
  scores.add(step_of(1, 2, 1.0f, 0.0f));
  EXPECT_FLOAT_EQ(scores.scores(0)[0], 8.0f * 0.25f + 1.0f);
}

TEST(SequenceScores, WithAWindowAreOfAboutItsLastQueries) {
  SequenceScores scores({.is_kept = true, .window_queries = 32}, 1, 64, 1);
  scores.add(step_of(1, 32, 8.0f, 0.0f));
  scores.add(step_of(1, 8, 1.0f, 0.0f));
  EXPECT_FLOAT_EQ(scores.scores(0)[0], 8.0f * 0.75f + 1.0f);
  scores.add(step_of(1, 32, 3.0f, 0.0f));
  EXPECT_FLOAT_EQ(scores.scores(0)[0], 3.0f);
}

TEST(SequenceScores, PoolTheHeadsAsThePolicySays) {
  SequenceScores scores({.is_kept = true, .pooling = HeadPooling::kGreatest}, 1, 64, 1);
  scores.add(step_of(1, 1, 8.0f, 5.0f));
  EXPECT_FLOAT_EQ(scores.scores(0)[0], 5.0f);
}

TEST(SequenceScores, GrowWithTheSequence) {
  SequenceScores scores({.is_kept = true}, 2, 64, 2);
  for (std::int32_t n = 1; n <= 40; ++n) {
    StepScores step{.num_blocks = n};
    step.num_queries = {1, 1};
    step.sum.assign(static_cast<std::size_t>(2 * n), 1.0f);
    step.greatest = step.sum;
    scores.add(step);
    scores.set_statistic(1, n - 1, static_cast<float>(n));
  }
  ASSERT_EQ(scores.num_blocks(), 40);
  for (std::int32_t b = 0; b < 40; ++b) {
    const auto index = static_cast<std::size_t>(b);
    EXPECT_FLOAT_EQ(scores.scores(0)[index], static_cast<float>(40 - b));
    EXPECT_FLOAT_EQ(scores.scores(1)[index], static_cast<float>(40 - b));
    EXPECT_FLOAT_EQ(scores.statistics(0)[index], 0.0f);
    EXPECT_FLOAT_EQ(scores.statistics(1)[index], static_cast<float>(b + 1));
  }
}

TEST(SequenceScores, KnowTheMagnitudeOfABlocksValuesBesideItsStatistic) {
  SequenceScores scores({.is_kept = true}, 1, 64, 4);
  scores.set_statistic(0, 0, -0.75f, 1.0f);
  scores.set_statistic(0, 1, -0.75f, 2.0f);
  scores.set_statistic(0, 2, 0.3f, 1e30f);
  scores.set_statistic(0, 3, 0.0f, 0.0f);
  const std::span<const float> statistics = scores.statistics(0);
  EXPECT_NEAR(statistics[0], -0.75f, 1e-4f);
  EXPECT_NEAR(statistics[2], 0.3f, 1e-4f);
  EXPECT_NEAR(statistics[3], 0.0f, 1e-30f);
  EXPECT_EQ(SequenceScores::value_magnitude(statistics[1]),
            SequenceScores::value_magnitude(statistics[0]) + 8);
  EXPECT_EQ(SequenceScores::value_magnitude(statistics[2]), 255);
  EXPECT_EQ(SequenceScores::value_magnitude(statistics[3]), 0);
}

TEST(SequenceScores, OfABlockThatIsGoneStayAsWhatWasLost) {
  SequenceScores scores({.is_kept = true, .decay = 0.5f}, 1, 64, 1);
  scores.add(step_of(1, 1, 8.0f, 0.0f));
  scores.freeze(0, 0);
  scores.freeze(0, 7);  // never looked at
  scores.add(step_of(2, 1, 0.0f, 0.0f));
  EXPECT_FLOAT_EQ(scores.scores(0)[0], -8.0f);
  EXPECT_FLOAT_EQ(scores.scores(0)[1], 0.0f);
  EXPECT_FLOAT_EQ(scores.lost_share(0), 1.0f);
}

TEST(AttentionMemory, AsksForTheQueriesThatItCounts) {
  EXPECT_EQ(AttentionMemory{}.weights().num_queries, 0);
  const AttentionMemory all{.is_kept = true, .decay = 0.9f};
  EXPECT_EQ(all.weights().num_queries, kAllQueries);
  EXPECT_EQ(all.weights().decay, 0.9f);
  const AttentionMemory window{.is_kept = true, .window_queries = 32};
  EXPECT_EQ(window.weights().num_queries, 32);
}

}  // namespace
}  // namespace kvasir::kv::sequence_scores_test
