// Random inputs of cases.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace kvasir::cuda {

// Normal numbers, of which every 97th is 30 times as large.
inline std::vector<float> random_floats(std::int64_t count, float deviation, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& each : values) each = deviation * normal(random);
  for (std::size_t i = 13; i < values.size(); i += 97) values[i] *= 30.0f;
  return values;
}

}  // namespace kvasir::cuda
