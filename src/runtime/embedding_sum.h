// The embedding of a prompt, while its hidden states come in.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kvasir/request.h"

namespace kvasir::runtime {

// Adds rows one by one in the order of their positions, so that chunks change no bit.
//
// Thread safety: none.
class EmbeddingSum {
 public:
  // Requires: pooling is not kNone, num_prompt_tokens > 0.
  EmbeddingSum(Pooling pooling, std::int32_t num_prompt_tokens)
      : first_position_(pooling == Pooling::kLast ? num_prompt_tokens - 1 : 0) {}

  // The final hidden state [hidden_size] after one position, each position once.
  void add(std::int32_t position, std::span<const float> hidden);

  // The direction of the sum, at length 1; zeros where it has no direction.
  std::vector<float> unit_vector() const;

 private:
  std::int32_t first_position_;
  std::vector<double> sum_;
};

}  // namespace kvasir::runtime
