#include "spec/survival.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace kvasir::spec::survival_test {
namespace {

TEST(Survival, IsAProductAtFirst) {
  const Survival survival;
  EXPECT_DOUBLE_EQ(survival.after(0.5, 0.8), 0.4);
}

// Chains that are right as a whole or not at all, where the estimate of each guess is its share alone.
TEST(Survival, ExpectsAsManyAsComeThoughGuessesHangTogether) {
  std::mt19937 random(1);
  Survival survival;
  double expected = 0.0, expected_by_product = 0.0;
  int num_right = 0;
  constexpr int kChains = 4000, kGuesses = 6;
  for (int i = 0; i < kChains; ++i) {
    const bool is_right = random() % 10 < 8;
    double chance = 1.0;
    for (int depth = 0; depth < kGuesses; ++depth) {
      chance = survival.after(chance, 0.8);
      expected_by_product += std::pow(0.8, depth + 1);
      expected += chance;
      num_right += is_right ? 1 : 0;
      survival.observe(chance, is_right);
    }
  }
  EXPECT_GT(std::abs(expected_by_product - num_right) / kChains, 1.0);
  EXPECT_LT(std::abs(expected - num_right) / kChains, 0.05);
}

TEST(Survival, NoRunOfErrorsIsForever) {
  Survival survival;
  for (int i = 0; i < 100'000; ++i) survival.observe(1.0, false);
  EXPECT_DOUBLE_EQ(survival.power(), 16.0);
  for (int i = 0; i < 1000; ++i) survival.observe(0.0, true);
  EXPECT_LT(survival.power(), 1.0);
}

}  // namespace
}  // namespace kvasir::spec::survival_test
