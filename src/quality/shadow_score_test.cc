#include "quality/shadow_score.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

namespace kvasir::quality::shadow_score_test {
namespace {

using Distribution = std::vector<double>;

Distribution drawn(std::mt19937_64& random) {
  std::normal_distribution<double> normal(0.0, 3.0);
  Distribution p(50);
  for (double& value : p) value = std::exp(normal(random));
  const double sum = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& value : p) value /= sum;
  return p;
}

PositionLogprobs listed(const Distribution& p, TokenId chosen, std::size_t count) {
  std::vector<TokenId> order(p.size());
  std::iota(order.begin(), order.end(), TokenId{0});
  std::ranges::sort(order, [&](TokenId a, TokenId b) { return p[static_cast<std::size_t>(a)] > p[static_cast<std::size_t>(b)]; });
  const auto entry = [&](TokenId token) {
    return TokenLogprob{.token = token, .logprob = static_cast<float>(std::log(p[static_cast<std::size_t>(token)]))};
  };
  PositionLogprobs at{.chosen = entry(chosen), .top = {}};
  for (std::size_t i = 0; i < count; ++i) at.top.push_back(entry(order[i]));
  return at;
}

double divergence(const Distribution& p, const Distribution& q) {
  double kl = 0.0;
  for (std::size_t i = 0; i < p.size(); ++i) kl += p[i] * std::log(p[i] / q[i]);
  return kl;
}

TEST(ShadowScore, EqualListsGiveExactlyNothing) {
  std::mt19937_64 random(1);
  std::vector<PositionLogprobs> served, exact;
  for (int i = 0; i < 20; ++i) {
    const Distribution p = drawn(random);
    served.push_back(listed(p, 7, 8));
    exact.push_back(listed(p, 7, 32));
  }
  const auto score = score_shadow(served, exact);
  ASSERT_TRUE(score);
  EXPECT_EQ(score->kl, 0.0);
  EXPECT_EQ(score->num_agreed, 20);
}

TEST(ShadowScore, IsALowerBoundOfTheDivergenceAndOfItsSize) {
  std::mt19937_64 random(2);
  double bounds = 0.0, whole = 0.0;
  for (int i = 0; i < 200; ++i) {
    const Distribution p = drawn(random);
    Distribution q = drawn(random);
    for (std::size_t t = 0; t < q.size(); ++t) q[t] = 0.8 * p[t] + 0.2 * q[t];
    const std::vector served = {listed(q, 3, 8)}, exact = {listed(p, 3, 32)};
    const auto score = score_shadow(served, exact);
    ASSERT_TRUE(score);
    EXPECT_LE(score->kl, divergence(p, q) + 1e-6);
    bounds += score->kl;
    whole += divergence(p, q);
  }
  EXPECT_GE(bounds, 0.5 * whole);
}

// The mean over tokens drawn from the served distribution is the divergence of served from exact.
TEST(ShadowScore, RatiosOfDrawnTokensAverageToTheDivergence) {
  std::mt19937_64 random(4);
  const Distribution p = drawn(random);
  Distribution q = drawn(random);
  for (std::size_t t = 0; t < q.size(); ++t) q[t] = 0.8 * p[t] + 0.2 * q[t];
  std::discrete_distribution<TokenId> draw(q.begin(), q.end());
  std::vector<PositionLogprobs> served, exact;
  for (int i = 0; i < 20000; ++i) {
    const TokenId token = draw(random);
    served.push_back(listed(q, token, 8));
    exact.push_back(listed(p, token, 32));
  }
  const auto score = score_shadow(served, exact);
  ASSERT_TRUE(score);
  EXPECT_NEAR(score->log_ratio, divergence(q, p), 0.1 * divergence(q, p));
}

TEST(ShadowScore, OtherTokensThanWereServedAreNoScore) {
  std::mt19937_64 random(3);
  const Distribution p = drawn(random);
  const std::vector served = {listed(p, 3, 8)}, other = {listed(p, 4, 32)};
  EXPECT_FALSE(score_shadow(served, other));
  EXPECT_FALSE(score_shadow(served, {}));
  EXPECT_FALSE(score_shadow({}, {}));
}

}  // namespace
}  // namespace kvasir::quality::shadow_score_test
