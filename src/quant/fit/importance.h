// What an error of each number of a block counts.
#pragma once

#include <algorithm>

#include "quant/fit/lanes.h"

namespace kvasir::quant {

// Copies the importance of a block's numbers with a floor, for files have zeros where nothing was observed. A block of
// zeros, or without importance, counts all numbers alike.
template <int kElements>
KVASIR_FIT_INLINE void weights_of(const float* importance, float* weights) {
  Lanes sums{};
  if (importance != nullptr) {
    for (int i = 0; i < kElements; i += kLanes) sums += lanes_at(importance + i);
  }
  const float sum = sum_of(sums);
  if (!(sum > 0.0f)) {
    std::fill_n(weights, kElements, 1.0f);
    return;
  }
  // Scaled to a mean of 1, so that no sum leaves the range of floats.
  const float scale = static_cast<float>(kElements) / sum;
  for (int i = 0; i < kElements; ++i) weights[i] = std::max(importance[i] * scale, 1e-8f);
}

}  // namespace kvasir::quant
