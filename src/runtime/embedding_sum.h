// The embedding of a prompt, while its hidden states come in.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kvasir/pooling.h"

namespace kvasir::runtime {

// Adds rows one by one in the order of their positions, so that chunks change no bit.
//
// Thread safety: none.
class EmbeddingSum {
 public:
  // Requires: pooling is kMean, kLast or kFirst; num_prompt_tokens > 0.
  EmbeddingSum(Pooling pooling, std::int32_t num_prompt_tokens)
      : first_position_(pooling == Pooling::kLast ? num_prompt_tokens - 1 : 0),
        end_position_(pooling == Pooling::kFirst ? 1 : num_prompt_tokens) {}

  // The final hidden state [hidden_size] after one position, each position once.
  void add(std::int32_t position, std::span<const float> hidden);

  // The mean of the rows that count.
  std::vector<float> mean() const;

 private:
  std::int32_t first_position_, end_position_;
  std::vector<double> sum_;
};

// The direction of a vector, at length 1; zeros where it has none.
std::vector<float> unit_vector(std::span<const float> vector);

}  // namespace kvasir::runtime
