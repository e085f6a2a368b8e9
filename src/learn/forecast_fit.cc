#include "learn/forecast_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <random>
#include <vector>

#include "base/check.h"

namespace kvasir::learn {
namespace {

using Network = kv::ForecastNetwork;
constexpr std::size_t kInputs = Network::kNumInputs, kHidden = Network::kNumHidden;

constexpr float kLeastRate = 1e-5f;
// Of an input that is always the same: weights over less would leave nothing of a bias in float.
constexpr double kLeastSpread = 1e-3;
constexpr std::int32_t kWarmUpSteps = 100;
constexpr float kFirstMomentum = 0.9f, kSecondMomentum = 0.99f;
constexpr std::int32_t kStepsPerQuestion = 25;

// All numbers of a network in one run: those of the inputs, both outputs, the hidden biases and both outputs' biases.
class Numbers {
 public:
  explicit Numbers(std::size_t num_cells) : num_cells_(num_cells), values_(kInputs * kHidden + 2 * kHidden + num_cells * (kHidden + 2), 0.0f) {}

  std::vector<float>& values() { return values_; }
  float* input(std::size_t i) { return values_.data() + i * kHidden; }
  float* output() { return values_.data() + kInputs * kHidden; }
  float* asked() { return output() + kHidden; }
  float* hidden_bias(std::size_t cell) { return asked() + kHidden + cell * kHidden; }
  float& output_bias(std::size_t cell) { return hidden_bias(num_cells_)[cell]; }
  float& asked_bias(std::size_t cell) { return hidden_bias(num_cells_)[num_cells_ + cell]; }

 private:
  std::size_t num_cells_;
  std::vector<float> values_;
};

// Inputs less their mean, over their spread.
struct Scaling {
  kv::ForecastInputs::Inputs mean{}, spread{};
};

Scaling scaling_of(std::span<const ForecastRow> rows) {
  std::array<double, kInputs> sum{}, square{};
  for (const ForecastRow& row : rows) {
    for (std::size_t i = 0; i < kInputs; ++i) {
      sum[i] += row.inputs[i];
      square[i] += double{row.inputs[i]} * row.inputs[i];
    }
  }
  Scaling scaling;
  const auto count = static_cast<double>(rows.size());
  for (std::size_t i = 0; i < kInputs; ++i) {
    const double mean = sum[i] / count;
    scaling.mean[i] = static_cast<float>(mean);
    scaling.spread[i] = static_cast<float>(std::max(kLeastSpread, std::sqrt(std::max(0.0, square[i] / count - mean * mean))) + 1e-6);
  }
  return scaling;
}

bool is_cut(float output) { return !(output > Network::kLeast && output < Network::kMost); }

// Adds the slopes of one row's losses.
void add_slopes(const ForecastRow& row, const Scaling& scaling, Numbers& numbers, Numbers& slopes) {
  const auto cell = static_cast<std::size_t>(row.cell);
  std::array<float, kInputs> x;
  for (std::size_t i = 0; i < kInputs; ++i) x[i] = (row.inputs[i] - scaling.mean[i]) / scaling.spread[i];
  std::array<float, kHidden> hidden;
  std::copy_n(numbers.hidden_bias(cell), kHidden, hidden.begin());
  for (std::size_t i = 0; i < kInputs; ++i) {
    for (std::size_t j = 0; j < kHidden; ++j) hidden[j] += x[i] * numbers.input(i)[j];
  }
  float z = numbers.output_bias(cell), log_odds = numbers.asked_bias(cell);
  for (std::size_t j = 0; j < kHidden; ++j) {
    z += std::max(0.0f, hidden[j]) * numbers.output()[j];
    log_odds += std::max(0.0f, hidden[j]) * numbers.asked()[j];
  }
  const float slope = is_cut(z) ? 0.0f : std::exp(z) - row.target;
  const float asked_slope = is_cut(log_odds) ? 0.0f : 1.0f / (1.0f + std::exp(-log_odds)) - row.asked;
  slopes.output_bias(cell) += slope;
  slopes.asked_bias(cell) += asked_slope;
  std::array<float, kHidden> of_hidden;
  for (std::size_t j = 0; j < kHidden; ++j) {
    slopes.output()[j] += slope * std::max(0.0f, hidden[j]);
    slopes.asked()[j] += asked_slope * std::max(0.0f, hidden[j]);
    of_hidden[j] = hidden[j] > 0.0f ? slope * numbers.output()[j] + asked_slope * numbers.asked()[j] : 0.0f;
    slopes.hidden_bias(cell)[j] += of_hidden[j];
  }
  for (std::size_t i = 0; i < kInputs; ++i) {
    for (std::size_t j = 0; j < kHidden; ++j) slopes.input(i)[j] += of_hidden[j] * x[i];
  }
}

float rate_of(std::int32_t step, const FitOptions& options) {
  const float warm = std::min(1.0f, static_cast<float>(step) / kWarmUpSteps);
  const float part = static_cast<float>(step) / static_cast<float>(options.num_steps);
  return options.greatest_rate * warm * 0.5f * (1.0f + std::cos(std::numbers::pi_v<float> * part)) + kLeastRate;
}

// The network for inputs as they come.
Network network_of(Numbers& numbers, const Scaling& scaling, std::size_t num_cells) {
  Network network;
  for (std::size_t i = 0; i < kInputs; ++i) {
    for (std::size_t j = 0; j < kHidden; ++j) network.input_weights[i][j] = numbers.input(i)[j] / scaling.spread[i];
  }
  std::copy_n(numbers.output(), kHidden, network.output_weights.begin());
  std::copy_n(numbers.asked(), kHidden, network.asked_weights.begin());
  for (std::size_t cell = 0; cell < num_cells; ++cell) {
    Network::Hidden& biases = network.hidden_biases.emplace_back();
    for (std::size_t j = 0; j < kHidden; ++j) {
      biases[j] = numbers.hidden_bias(cell)[j];
      for (std::size_t i = 0; i < kInputs; ++i) biases[j] -= scaling.mean[i] * network.input_weights[i][j];
    }
    network.output_biases.push_back(numbers.output_bias(cell));
    network.asked_biases.push_back(numbers.asked_bias(cell));
  }
  return network;
}

void begin_at_random(Numbers& numbers, std::mt19937_64& random) {
  std::normal_distribution<float> normal;
  for (std::size_t i = 0; i < kInputs * kHidden; ++i) numbers.values()[i] = normal(random) / std::sqrt(static_cast<float>(kInputs));
  for (std::size_t j = 0; j < 2 * kHidden; ++j) numbers.output()[j] = 0.1f * normal(random);
}

// network_of() the other way.
void begin_with(const Network& network, const Scaling& scaling, Numbers& numbers) {
  for (std::size_t i = 0; i < kInputs; ++i) {
    for (std::size_t j = 0; j < kHidden; ++j) numbers.input(i)[j] = network.input_weights[i][j] * scaling.spread[i];
  }
  std::ranges::copy(network.output_weights, numbers.output());
  const bool knows_asked = !network.asked_biases.empty();
  if (knows_asked) std::ranges::copy(network.asked_weights, numbers.asked());
  for (std::size_t cell = 0; cell < network.output_biases.size(); ++cell) {
    for (std::size_t j = 0; j < kHidden; ++j) {
      float bias = network.hidden_biases[cell][j];
      for (std::size_t i = 0; i < kInputs; ++i) bias += scaling.mean[i] * network.input_weights[i][j];
      numbers.hidden_bias(cell)[j] = bias;
    }
    numbers.output_bias(cell) = network.output_biases[cell];
    if (knows_asked) numbers.asked_bias(cell) = network.asked_biases[cell];
  }
}

}  // namespace

Network fit_forecast(std::span<const ForecastRow> rows, std::int32_t num_cells, const FitOptions& options,
                     const std::function<bool(double)>& keep_going) {
  CHECK(!rows.empty());
  CHECK(options.from == nullptr || std::ssize(options.from->output_biases) == num_cells);
  const auto cells = static_cast<std::size_t>(num_cells);
  const Scaling scaling = scaling_of(rows);
  std::mt19937_64 random(options.seed);
  Numbers numbers(cells), first(cells), second(cells), slopes(cells);
  begin_at_random(numbers, random);
  if (options.from != nullptr) begin_with(*options.from, scaling, numbers);
  for (std::int32_t step = 1; step <= options.num_steps; ++step) {
    if (step % kStepsPerQuestion == 0 && !keep_going(static_cast<double>(step) / options.num_steps)) break;
    std::ranges::fill(slopes.values(), 0.0f);
    for (std::int32_t i = 0; i < options.num_rows_per_step; ++i) add_slopes(rows[random() % rows.size()], scaling, numbers, slopes);
    const float rate = rate_of(step, options);
    const float first_part = 1.0f - std::pow(kFirstMomentum, static_cast<float>(step));
    const float second_part = 1.0f - std::pow(kSecondMomentum, static_cast<float>(step));
    for (std::size_t i = 0; i < numbers.values().size(); ++i) {
      const float slope = slopes.values()[i] / static_cast<float>(options.num_rows_per_step);
      float& m = first.values()[i];
      float& v = second.values()[i];
      m = kFirstMomentum * m + (1.0f - kFirstMomentum) * slope;
      v = kSecondMomentum * v + (1.0f - kSecondMomentum) * slope * slope;
      numbers.values()[i] -= rate * (m / first_part) / (std::sqrt(v / second_part) + 1e-8f);
    }
  }
  return network_of(numbers, scaling, cells);
}

double forecast_loss(const Network& network, std::span<const ForecastRow> rows) {
  double sum = 0.0;
  for (const ForecastRow& row : rows) {
    const double z = network.outputs(static_cast<std::size_t>(row.cell), row.inputs).log_of_attention;
    sum += std::exp(z) - double{row.target} * z;
  }
  return sum / static_cast<double>(std::max<std::size_t>(1, rows.size()));
}

}  // namespace kvasir::learn
