#include "kv/policy/forecast_network.h"

#include <algorithm>

namespace kvasir::kv {

// Each unit's sum has one order, and so has the output's.
float ForecastNetwork::log_of_attention(std::size_t cell, const std::array<float, kNumInputs>& inputs) const {
  Hidden hidden = hidden_biases[cell];
  for (std::size_t i = 0; i < kNumInputs; ++i) {
    for (std::size_t j = 0; j < kNumHidden; ++j) hidden[j] += inputs[i] * input_weights[i][j];
  }
  float output = output_biases[cell];
  for (std::size_t j = 0; j < kNumHidden; ++j) output += std::max(0.0f, hidden[j]) * output_weights[j];
  return output >= kLeast ? std::min(output, kMost) : kLeast;  // nor NaN
}

}  // namespace kvasir::kv
