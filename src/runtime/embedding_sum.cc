#include "runtime/embedding_sum.h"

#include <cmath>
#include <cstddef>

namespace kvasir::runtime {

void EmbeddingSum::add(std::int32_t position, std::span<const float> hidden) {
  if (position < first_position_ || position >= end_position_) return;
  sum_.resize(hidden.size());
  for (std::size_t i = 0; i < hidden.size(); ++i) sum_[i] += hidden[i];
}

std::vector<float> EmbeddingSum::mean() const {
  const double count = end_position_ - first_position_;
  std::vector<float> mean;
  mean.reserve(sum_.size());
  for (const double value : sum_) mean.push_back(static_cast<float>(value / count));
  return mean;
}

std::vector<float> unit_vector(std::span<const float> vector) {
  double squares = 0.0;
  for (const float value : vector) squares += double{value} * value;
  const double scale = squares > 0.0 ? 1.0 / std::sqrt(squares) : 0.0;
  std::vector<float> unit;
  unit.reserve(vector.size());
  for (const float value : vector) unit.push_back(static_cast<float>(value * scale));
  return unit;
}

}  // namespace kvasir::runtime
