// A model's later attention to a block, by what was learned from texts that it has read.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace kvasir::kv {

// One hidden layer of rectified units over numbers of a block, each head with biases of its own. Its outputs are the logarithm of
// the attention that the block will get, in means of its head, and the log-odds that the block is asked for.
struct ForecastNetwork {
  static constexpr std::size_t kNumInputs = 7, kNumHidden = 16;
  using Hidden = std::array<float, kNumHidden>;

  std::array<Hidden, kNumInputs> input_weights{};
  std::vector<Hidden> hidden_biases;  // by cell of a block
  Hidden output_weights{};
  std::vector<float> output_biases;  // by cell of a block
  Hidden asked_weights{};
  std::vector<float> asked_biases;  // by cell of a block; empty: that output was not learned

  // Between kLeast and kMost.
  struct Outputs {
    float log_of_attention = 0.0f, log_odds_of_asked = kLeast;
  };
  // The outputs for a block of this cell, with its inputs as LearnedForecast has them.
  Outputs outputs(std::size_t cell, const std::array<float, kNumInputs>& inputs) const;
  static constexpr float kLeast = -12.0f, kMost = 6.0f;
};

}  // namespace kvasir::kv
