#include "backend/routing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace kvasir::backend::routing_test {
namespace {

struct Routed {
  std::vector<std::int32_t> experts;
  std::vector<float> weights;
};

Routed route(const RoutingRule& rule, const std::vector<float>& logits,
             const std::vector<float>& choice_bias = {}) {
  Routed routed;
  routed.experts.resize(static_cast<std::size_t>(rule.num_used));
  routed.weights.resize(static_cast<std::size_t>(rule.num_used));
  route_row(rule, logits.data(), choice_bias.empty() ? nullptr : choice_bias.data(), routed.experts.data(),
            routed.weights.data());
  return routed;
}

using Experts = std::vector<std::int32_t>;

TEST(Routing, SoftmaxOverAllIsTheWeightOfTheBest) {
  const Routed routed = route({.num_experts = 4, .num_used = 2}, {1.0f, 3.0f, 0.0f, 2.0f});
  const double sum = std::exp(1.0) + std::exp(3.0) + 1.0 + std::exp(2.0);
  EXPECT_EQ(routed.experts, (Experts{1, 3}));
  EXPECT_FLOAT_EQ(routed.weights[0], static_cast<float>(std::exp(3.0) / sum));
  EXPECT_FLOAT_EQ(routed.weights[1], static_cast<float>(std::exp(2.0) / sum));
}

TEST(Routing, RenormalisedWeightsAddUpToTheirScale) {
  const Routed routed = route({.num_experts = 4, .num_used = 3, .renormalizes = true, .weight_scale = 2.5},
                              {1.0f, 3.0f, 0.0f, 2.0f});
  EXPECT_EQ(routed.experts, (Experts{0, 1, 3}));
  EXPECT_FLOAT_EQ(routed.weights[0] + routed.weights[1] + routed.weights[2], 2.5f);
  EXPECT_FLOAT_EQ(routed.weights[1] / routed.weights[0], static_cast<float>(std::exp(2.0)));
}

TEST(Routing, TheLowerIdWinsATie) {
  EXPECT_EQ(route({.num_experts = 5, .num_used = 2}, {0.5f, 2.0f, 2.0f, 2.0f, 0.5f}).experts,
            (Experts{1, 2}));
  EXPECT_EQ(route({.num_experts = 3, .num_used = 1}, {-1.0f, -1.0f, -1.0f}).experts, (Experts{0}));
}

// Two logits whose softmax rounds to the same, nothing: the greater logit still wins.
TEST(Routing, LogitsDecideWhereScoresUnderflow) {
  EXPECT_EQ(route({.num_experts = 3, .num_used = 2}, {-2000.0f, 0.0f, -1900.0f}).experts, (Experts{1, 2}));
}

TEST(Routing, AChoiceBiasMovesTheChoiceAndNoWeight) {
  const RoutingRule rule{.num_experts = 3, .num_used = 1, .score = RouterScore::kSigmoid};
  EXPECT_EQ(route(rule, {0.0f, 1.0f, -1.0f}).experts, (Experts{1}));
  const Routed routed = route(rule, {0.0f, 1.0f, -1.0f}, {0.0f, 0.0f, 0.9f});
  EXPECT_EQ(routed.experts, (Experts{2}));
  EXPECT_FLOAT_EQ(routed.weights[0], static_cast<float>(1.0 / (1.0 + std::exp(1.0))));
}

// Group 0 has the best expert, group 1 the best two together.
TEST(Routing, AGroupCountsAsItsBestTwo) {
  const RoutingRule rule{
      .num_experts = 6, .num_used = 2, .score = RouterScore::kSigmoid, .num_groups = 2, .num_used_groups = 1};
  EXPECT_EQ(route(rule, {2.0f, -2.0f, -2.0f, 1.0f, 0.5f, 1.0f}).experts, (Experts{3, 5}));
}

TEST(Routing, AnExpertIsChosenOnceWhateverTheNumbers) {
  const float nan = std::numeric_limits<float>::quiet_NaN(),
              infinity = std::numeric_limits<float>::infinity();
  const RoutingRule rule{.num_experts = 4, .num_used = 3, .renormalizes = true};
  EXPECT_EQ(route(rule, {nan, nan, nan, nan}).experts, (Experts{0, 1, 2}));
  EXPECT_EQ(route(rule, {nan, 1.0f, nan, 2.0f}).experts, (Experts{0, 1, 3}));
  EXPECT_EQ(route(rule, {infinity, -infinity, infinity, 0.0f}).experts, (Experts{0, 2, 3}));
}

}  // namespace
}  // namespace kvasir::backend::routing_test
