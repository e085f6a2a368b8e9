#include "eval/kv_cost_curve.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace kvasir::eval::kv_cost_curve_test {
namespace {

std::vector<KvCostSample> samples_of(double least, double slope) {
  std::vector<KvCostSample> samples;
  for (const double factor : {0.9, 1.2}) {  // two windows
    for (const double budget : {0.1, 0.3, 0.2}) {
      const double planned = factor * 0.01 / (budget * budget);
      samples.push_back({.budget = budget, .planned = planned, .kl = least + slope * planned, .log_ratio = 0.5 * slope * planned});
    }
  }
  return samples;
}

TEST(KvCostCurve, FindsTheLineThatThereIs) {
  const io::KvCostCurve curve = fit_cost_curve(samples_of(0.002, 0.3));
  EXPECT_NEAR(curve.least_kl, 0.002, 1e-9);
  EXPECT_NEAR(curve.kl_per_cost, 0.3, 1e-9);
  EXPECT_EQ(curve.num_windows, 2);
  ASSERT_EQ(curve.points.size(), 3u);
  EXPECT_EQ(curve.points[0].budget, 0.3);
  EXPECT_EQ(curve.points[2].budget, 0.1);
  EXPECT_NEAR(curve.points[2].planned, 1.05, 1e-12);
  EXPECT_NEAR(curve.points[2].kl, 0.002 + 0.3 * 1.05, 1e-12);
}

TEST(KvCostCurve, RangesAreTwoPooledDeviationsOfAWindowMore) {
  // Deviations of 0.1 and 0.3 roots of the divergence, with one degree of freedom each.
  const std::vector<KvCostSample> samples = {{.budget = 0.3, .planned = 1.0, .kl = 0.01, .log_ratio = 0.02 + 0.01},
                                             {.budget = 0.3, .planned = 1.0, .kl = 0.01, .log_ratio = 0.02 - 0.01},
                                             {.budget = 0.1, .planned = 4.0, .kl = 0.04, .log_ratio = 0.05 + 0.06},
                                             {.budget = 0.1, .planned = 4.0, .kl = 0.04, .log_ratio = 0.05 - 0.06}};
  const io::KvCostCurve curve = fit_cost_curve(samples);
  const double squared = (2 * 0.1 * 0.1 + 2 * 0.3 * 0.3) / 2.0;
  const double of_window_more = std::sqrt(squared * 1.5);
  EXPECT_NEAR(std::log(curve.points[0].ratio_high), 0.02 + 2.0 * of_window_more * 0.1, 1e-9);
  EXPECT_NEAR(std::log(curve.points[0].ratio_low), 0.02 - 2.0 * of_window_more * 0.1, 1e-9);
  EXPECT_NEAR(std::log(curve.points[1].ratio_high), 0.05 + 2.0 * of_window_more * 0.2, 1e-9);
  const io::KvCostCurve of_one = fit_cost_curve(std::vector<KvCostSample>{samples[0]});
  EXPECT_EQ(of_one.points[0].ratio_low, of_one.points[0].ratio_high);
}

TEST(KvCostCurve, HasNeitherADivergenceNorASlopeBelowNothing) {
  const io::KvCostCurve curve = fit_cost_curve(samples_of(-0.003, 0.3));
  EXPECT_EQ(curve.least_kl, 0.0);
  EXPECT_GT(curve.kl_per_cost, 0.2);
  EXPECT_LT(curve.kl_per_cost, 0.3);
  const io::KvCostCurve falling = fit_cost_curve(samples_of(0.5, -0.1));
  EXPECT_EQ(falling.kl_per_cost, 0.0);
  EXPECT_GT(falling.least_kl, 0.3);
  EXPECT_EQ(fit_cost_curve(std::vector<KvCostSample>{{.budget = 0.3, .planned = 0.1, .kl = 0.02}}).least_kl, 0.02);
}

TEST(KvCostCurve, ExpectsBetweenBudgetsByTheirLogarithms) {
  const io::KvCostCurve curve = {.points = {{.budget = 0.4, .kl = 0.01, .ratio_low = 0.99, .ratio_high = 1.01},
                                            {.budget = 0.2, .kl = 0.04, .ratio_low = 1.01, .ratio_high = 1.21}}};
  EXPECT_NEAR(expected_cost(curve, 0.3)->kl, 0.02, 1e-12);
  EXPECT_NEAR(expected_cost(curve, 0.3)->ratio_high, std::sqrt(1.01 * 1.21), 1e-12);
  EXPECT_NEAR(expected_cost(curve, 0.2)->kl, 0.04, 1e-12);
  EXPECT_NEAR(expected_cost(curve, 0.4)->ratio_low, 0.99, 1e-12);
  EXPECT_EQ(expected_cost(curve, 0.7)->kl, 0.01);
  EXPECT_FALSE(expected_cost(curve, 0.19));
  EXPECT_FALSE(expected_cost({}, 0.3));
}

TEST(KvPlanTrials, MeanIsOfOneBudget) {
  const std::vector<KvPlanTrial> trials = {{.num_tokens = 128, .budget = 0.3, .regret = {.planned = 1.0}},
                                           {.num_tokens = 128, .budget = 0.1, .regret = {.planned = 8.0}},
                                           {.num_tokens = 256, .budget = 0.3, .regret = {.planned = 2.0}}};
  EXPECT_EQ(mean_planned_cost(trials, 0.3), 1.5);
  EXPECT_EQ(mean_planned_cost(trials, 0.2), 0.0);
}

}  // namespace
}  // namespace kvasir::eval::kv_cost_curve_test
