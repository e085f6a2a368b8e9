#include "kv/policy/forecast_network.h"

#include <algorithm>

namespace kvasir::kv {
namespace {

float in_range(float output) {
  return output >= ForecastNetwork::kLeast ? std::min(output, ForecastNetwork::kMost) : ForecastNetwork::kLeast;  // nor NaN
}

float weighted(const ForecastNetwork::Hidden& fired, const ForecastNetwork::Hidden& weights, float bias) {
  float output = bias;
  for (std::size_t j = 0; j < ForecastNetwork::kNumHidden; ++j) output += fired[j] * weights[j];
  return in_range(output);
}

}  // namespace

// Each unit's sum has one order, and so have the outputs'.
ForecastNetwork::Outputs ForecastNetwork::outputs(std::size_t cell, const std::array<float, kNumInputs>& inputs) const {
  Hidden hidden = hidden_biases[cell];
  for (std::size_t i = 0; i < kNumInputs; ++i) {
    for (std::size_t j = 0; j < kNumHidden; ++j) hidden[j] += inputs[i] * input_weights[i][j];
  }
  for (float& unit : hidden) unit = std::max(0.0f, unit);
  Outputs result = {.log_of_attention = weighted(hidden, output_weights, output_biases[cell])};
  if (!asked_biases.empty()) result.log_odds_of_asked = weighted(hidden, asked_weights, asked_biases[cell]);
  return result;
}

}  // namespace kvasir::kv
