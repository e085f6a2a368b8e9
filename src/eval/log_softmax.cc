#include "eval/log_softmax.h"

#include <algorithm>
#include <cmath>

namespace kvasir::eval {

std::vector<float> log_softmax(std::span<const float> logits) {
  const float greatest = *std::ranges::max_element(logits);
  double sum = 0.0;
  for (float logit : logits) sum += std::exp(logit - greatest);
  const float log_sum = greatest + static_cast<float>(std::log(sum));
  std::vector<float> result(logits.begin(), logits.end());
  for (float& x : result) x -= log_sum;
  return result;
}

double divergence(std::span<const float> full, std::span<const float> other) {
  double sum = 0.0;
  for (std::size_t i = 0; i < full.size(); ++i) {
    sum += double{std::exp(full[i])} * (double{full[i]} - double{other[i]});
  }
  return sum;
}

bool have_same_top(std::span<const float> a, std::span<const float> b) {
  return std::ranges::max_element(a) - a.begin() == std::ranges::max_element(b) - b.begin();
}

}  // namespace kvasir::eval
