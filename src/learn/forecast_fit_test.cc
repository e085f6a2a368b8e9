#include "learn/forecast_fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace kvasir::learn::forecast_fit_test {
namespace {

constexpr std::int32_t kCells = 3;

// Expected targets are exp(0.8 x0 - 0.5 max(0, x1) + 0.2 cell), and what comes is at times nothing and at times double.
double expected(const ForecastRow& row) { return std::exp(0.8 * row.inputs[0] - 0.5 * std::max(0.0f, row.inputs[1]) + 0.2 * row.cell); }

// A block is asked for by this chance.
double chance(const ForecastRow& row) { return 1.0 / (1.0 + std::exp(3.0 - row.inputs[1] - row.cell)); }

std::vector<ForecastRow> rows_of(std::uint64_t seed, int count) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::vector<ForecastRow> rows(static_cast<std::size_t>(count));
  for (ForecastRow& row : rows) {
    for (float& input : row.inputs) input = 3.0f + 2.0f * normal(random);  // neither centred nor of spread 1
    row.inputs[0] = normal(random);
    row.inputs[1] = normal(random);
    row.cell = static_cast<std::int32_t>(random() % kCells);
    row.target = static_cast<float>((random() % 2 == 0 ? 2.0 : 0.0) * expected(row));
    row.asked = static_cast<double>(random() % 1000) < 1000.0 * chance(row) ? 1.0f : 0.0f;
  }
  return rows;
}

const auto kGoOn = [](double) { return true; };

TEST(ForecastFit, FindsTheExpectationOfANoisyTarget) {
  const auto network = fit_forecast(rows_of(1, 20000), kCells, {.num_steps = 1500, .num_rows_per_step = 512}, kGoOn);
  const std::vector<ForecastRow> others = rows_of(2, 2000);
  double best = 0.0, of_mean = 0.0, mean = 0.0;
  for (const ForecastRow& row : others) mean += row.target / static_cast<double>(others.size());
  for (const ForecastRow& row : others) {
    best += (expected(row) - row.target * std::log(expected(row))) / static_cast<double>(others.size());
    of_mean += (mean - row.target * std::log(mean)) / static_cast<double>(others.size());
  }
  const double loss = forecast_loss(network, others);
  EXPECT_LT(loss - best, 0.05 * (of_mean - best)) << loss << ", at best " << best << ", by the mean " << of_mean;
}

TEST(ForecastFit, FindsTheChanceOfBeingAsked) {
  const auto network = fit_forecast(rows_of(1, 20000), kCells, {.num_steps = 1500, .num_rows_per_step = 512}, kGoOn);
  double error = 0.0, of_mean = 0.0;
  const std::vector<ForecastRow> others = rows_of(2, 2000);
  double mean = 0.0;
  for (const ForecastRow& row : others) mean += chance(row) / static_cast<double>(others.size());
  for (const ForecastRow& row : others) {
    const double log_odds = network.outputs(static_cast<std::size_t>(row.cell), row.inputs).log_odds_of_asked;
    const double found = 1.0 / (1.0 + std::exp(-log_odds));
    error += std::abs(found - chance(row)) / static_cast<double>(others.size());
    of_mean += std::abs(mean - chance(row)) / static_cast<double>(others.size());
  }
  EXPECT_LT(error, 0.2 * of_mean) << error << ", by the mean " << of_mean;
}

TEST(ForecastFit, TheSameRowsGiveTheSameNetwork) {
  const std::vector<ForecastRow> rows = rows_of(3, 500);
  const FitOptions options = {.num_steps = 60, .num_rows_per_step = 64};
  const auto once = fit_forecast(rows, kCells, options, kGoOn), again = fit_forecast(rows, kCells, options, kGoOn);
  EXPECT_EQ(once.input_weights, again.input_weights);
  EXPECT_EQ(once.hidden_biases, again.hidden_biases);
  EXPECT_EQ(once.output_biases, again.output_biases);
  EXPECT_EQ(once.asked_biases, again.asked_biases);
  const auto other = fit_forecast(rows, kCells, {.num_steps = 60, .num_rows_per_step = 64, .seed = 2}, kGoOn);
  EXPECT_NE(once.input_weights, other.input_weights);
}

TEST(ForecastFit, EndsWhenItIsAskedTo) {
  int num_asked = 0;
  fit_forecast(rows_of(4, 100), kCells, {.num_steps = 1000000, .num_rows_per_step = 8}, [&](double done) {
    EXPECT_LT(done, 0.01);
    return ++num_asked < 3;
  });
  EXPECT_EQ(num_asked, 3);
}

}  // namespace
}  // namespace kvasir::learn::forecast_fit_test
