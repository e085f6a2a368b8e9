#include "engine/batched_tokens.h"

#include <gtest/gtest.h>

namespace kvasir::batched_tokens_test {
namespace {

model::ModelConfig mixture(std::int32_t num_experts, std::int32_t num_used) {
  model::ModelConfig model;
  model.moe.rule = {.num_experts = num_experts, .num_used = num_used};
  return model;
}

TEST(BatchedTokens, GiveEachOfManyExpertsItsRows) {
  EXPECT_EQ(batched_tokens({}, {}), 512);
  EXPECT_EQ(batched_tokens({}, mixture(8, 2)), 512);
  EXPECT_EQ(batched_tokens({}, mixture(32, 4)), 1024);
  EXPECT_EQ(batched_tokens({}, mixture(128, 8)), 2048);
  EXPECT_EQ(batched_tokens({}, mixture(512, 8)), 2048);
}

TEST(BatchedTokens, AreWhatWasAskedForOrEnoughForASequenceEach) {
  EXPECT_EQ(batched_tokens({.max_num_batched_tokens = 100}, mixture(128, 8)), 100);
  EXPECT_EQ(batched_tokens({.max_num_seqs = 1000}, {}), 1000);
}

}  // namespace
}  // namespace kvasir::batched_tokens_test
