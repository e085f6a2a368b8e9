#include "quality/canary.h"

#include <gtest/gtest.h>

#include <string>

namespace kvasir::quality::canary_test {
namespace {

constexpr ShadowScore kScore = {.kl = 0.004, .num_tokens = 10, .num_agreed = 9};
constexpr ServedCost kCost = {.decode_ms_per_token = 10.0, .num_preemptions = 0};

double share_of_tenants(const Canary& canary) {
  int count = 0;
  for (int i = 0; i < 10'000; ++i) count += canary.policy_for("ladder", "tenant-" + std::to_string(i)) == "new";
  return count / 10'000.0;
}

// The news at the end of a stage in which both arms had answers.
CanaryNews stage(Canary& canary, const ShadowScore& score, const ServedCost& cost) {
  for (int i = 0; i < 400; ++i) canary.note("ladder", kScore, kCost);
  CanaryNews news = CanaryNews::kNone;
  for (int i = 0; i < Canary::kShadowsPerStage; ++i) {
    EXPECT_EQ(news, CanaryNews::kNone);
    news = canary.note("new", score, cost);
  }
  return news;
}

TEST(Canary, GetsMoreTenantsStageByStageAndKeepsThoseThatItHas) {
  Canary canary("ladder", "new");
  std::string first;
  for (int i = 0; first.empty(); ++i) {
    if (canary.policy_for("ladder", std::to_string(i)) == "new") first = std::to_string(i);
  }
  EXPECT_NEAR(share_of_tenants(canary), 0.01, 0.005);
  EXPECT_EQ(stage(canary, kScore, kCost), CanaryNews::kNextStage);
  EXPECT_NEAR(share_of_tenants(canary), 0.05, 0.01);
  EXPECT_EQ(canary.policy_for("ladder", first), "new");
  EXPECT_EQ(stage(canary, kScore, kCost), CanaryNews::kNextStage);
  EXPECT_NEAR(share_of_tenants(canary), 0.25, 0.02);
  EXPECT_EQ(stage(canary, kScore, kCost), CanaryNews::kServesAll);
  EXPECT_EQ(share_of_tenants(canary), 1.0);
  EXPECT_EQ(canary.policy_for("snapkv", first), "snapkv") << "whoever asks for another policy gets it";
}

TEST(Canary, AWorseOneServesNobodyAnyMore) {
  for (const auto& [score, cost] : {std::pair(ShadowScore{.kl = 0.008, .num_tokens = 10, .num_agreed = 9}, kCost),
                                    std::pair(kScore, ServedCost{.decode_ms_per_token = 14.0}),
                                    std::pair(kScore, ServedCost{.decode_ms_per_token = 10.0, .num_preemptions = 1})}) {
    Canary canary("ladder", "new");
    EXPECT_EQ(stage(canary, score, cost), CanaryNews::kIsWorse);
    EXPECT_EQ(share_of_tenants(canary), 0.0);
    EXPECT_EQ(canary.note("new", score, cost), CanaryNews::kNone);
  }
}

TEST(Canary, ABetterOneGoesOn) {
  Canary canary("ladder", "new");
  EXPECT_EQ(stage(canary, {.kl = 0.001, .num_tokens = 10, .num_agreed = 10}, {.decode_ms_per_token = 8.0}), CanaryNews::kNextStage);
}

// An arm that is missing must not count as good nor as bad.
TEST(Canary, WithoutAnswersOfTheOldOneItIsNotCompared) {
  Canary canary("ladder", "new");
  CanaryNews news = CanaryNews::kNone;
  for (int i = 0; i < Canary::kShadowsPerStage; ++i) news = canary.note("new", {.kl = 0.008, .num_tokens = 10, .num_agreed = 9}, kCost);
  EXPECT_EQ(news, CanaryNews::kNextStage);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(canary.note("ladder", kScore, kCost), CanaryNews::kNone);
  EXPECT_NEAR(share_of_tenants(canary), 0.05, 0.01) << "answers of the old one alone end no stage";
}

TEST(Canary, WithoutOneNothingChanges) {
  Canary none("ladder", "");
  EXPECT_EQ(none.policy_for("ladder", "t"), "ladder");
  EXPECT_EQ(none.note("ladder", kScore, kCost), CanaryNews::kNone);
}

}  // namespace
}  // namespace kvasir::quality::canary_test
