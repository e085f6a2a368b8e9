#include "journal/block_lifetimes.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace kvasir::journal::block_lifetimes_test {
namespace {

using kv::KvFormat;

kv::StepRecord step(std::int32_t num_tokens, KvFormat from, KvFormat to, float forecast, float score) {
  return {.num_computed_tokens = num_tokens,
          .actions = {{.block = 2, .cell = 1, .forecast = forecast, .score = score, .from = from, .to = to}}};
}

// Two cells and four blocks, after steps that each paid `attention` to every block of every query.
kv::SequenceEnd end_after(const kv::AttentionMemory& memory, std::int32_t num_tokens, float attention) {
  kv::SequenceScores scores(memory, 2, 64, 4);
  constexpr std::int32_t kStepTokens = 16;
  for (std::int32_t done = 0; done < num_tokens; done += kStepTokens) {
    kv::StepScores added{.num_blocks = 4};
    added.num_queries.assign(2, kStepTokens);
    const float in_memory = memory.window_queries > 0 ? attention : attention * memory.weight_of(kStepTokens);
    added.sum.assign(8, in_memory);
    added.greatest = added.sum;
    scores.add(added);
  }
  return {.num_computed_tokens = num_tokens, .scores = {std::move(scores)}};
}

float score_at(const kv::SequenceEnd& end) { return end.scores[0].scores(1)[2]; }

TEST(BlockLifetimes, KeepsTheFirstAndTheLastChange) {
  BlockLifetimes lifetimes;
  lifetimes.add(step(64, KvFormat::kF16, KvFormat::kQ8, 0.5f, 1.0f));
  lifetimes.add(step(128, KvFormat::kQ8, KvFormat::kK4V4, 0.2f, 0.7f));
  ASSERT_EQ(lifetimes.ordered().size(), 1u);
  const BlockLifetime life = lifetimes.ordered()[0];
  EXPECT_EQ(life.num_changes, 2);
  EXPECT_EQ(std::pair(life.first_token, life.last_token), std::pair(64, 128));
  EXPECT_EQ(std::pair(life.from, life.format), std::pair(KvFormat::kF16, KvFormat::kK4V4));
  EXPECT_FLOAT_EQ(life.forecast, 0.2f);
  EXPECT_FLOAT_EQ(life.score, 0.7f);
}

// The attention before the change must not count, whatever it was; the forecast is not asked.
TEST(BlockLifetimes, RealisedIsWhatEachQuerySinceTheChangePaid) {
  for (const kv::AttentionMemory memory :
       {kv::AttentionMemory{.is_kept = true, .decay = 0.995f}, kv::AttentionMemory{.is_kept = true}}) {
    const kv::SequenceEnd before = end_after(memory, 320, 0.25f);
    const kv::SequenceEnd since = end_after(memory, 160, 0.03f);
    kv::SequenceScores scores = before.scores[0];
    kv::StepScores added{.num_blocks = 4};
    added.num_queries.assign(2, 160);
    added.sum.assign(8, score_at(since));
    added.greatest = added.sum;
    scores.add(added);
    BlockLifetimes lifetimes;
    lifetimes.add(step(320, KvFormat::kF16, KvFormat::kQ8, 0.9f, score_at(before)));
    const kv::SequenceEnd end{.num_computed_tokens = 480, .scores = {scores}};
    const auto realised = realised_attention(lifetimes.ordered()[0], end);
    ASSERT_TRUE(realised);
    EXPECT_NEAR(*realised, 0.03f, 1e-4f);
  }
}

TEST(BlockLifetimes, WhatNobodyCanKnowIsNotMadeUp) {
  const kv::AttentionMemory decaying{.is_kept = true, .decay = 0.995f};
  const kv::SequenceEnd end = end_after(decaying, 320, 0.25f);
  const auto realised = [&](std::int32_t num_tokens, KvFormat to, const kv::SequenceEnd& at_end) {
    BlockLifetimes lifetimes;
    lifetimes.add(step(num_tokens, KvFormat::kF16, to, 0.5f, 0.0f));
    return realised_attention(lifetimes.ordered()[0], at_end);
  };
  EXPECT_TRUE(realised(160, KvFormat::kQ8, end));
  EXPECT_FALSE(realised(160, KvFormat::kGone, end));  // nobody reads what is gone
  EXPECT_FALSE(realised(320, KvFormat::kQ8, end));    // no query came
  EXPECT_FALSE(realised(160, KvFormat::kQ8, {.num_computed_tokens = 320}));
  EXPECT_FALSE(
      realised(160, KvFormat::kQ8, end_after({.statistic = kv::CellStatistic::kDistinctness}, 320, 0)));
  EXPECT_FALSE(realised(160, KvFormat::kQ8, end_after({.is_kept = true, .window_queries = 32}, 320, 0.25f)));
}

}  // namespace
}  // namespace kvasir::journal::block_lifetimes_test
