#include "quant/encode/group_rounding.h"

#include <algorithm>
#include <cmath>

namespace kvasir::quant {
namespace {

std::int16_t nearest_code(float level, float low, float high) {
  return static_cast<std::int16_t>(std::nearbyint(std::clamp(level, low, high)));
}

GroupScale round_to_signs(const float* x, std::int64_t num_elements, std::int16_t* codes) {
  double sum = 0.0;
  for (std::int64_t i = 0; i < num_elements; ++i) {
    sum += std::fabs(x[i]);
    codes[i] = x[i] < 0.0f ? -1 : 1;
  }
  return {.scale = static_cast<float>(sum / static_cast<double>(num_elements))};
}

}  // namespace

GroupScale round_symmetric(const float* x, std::int64_t num_elements, int bits, std::int16_t* codes) {
  if (bits == 1) return round_to_signs(x, num_elements, codes);
  const auto outermost = static_cast<float>((1 << (bits - 1)) - 1);
  float largest = 0.0f;
  for (std::int64_t i = 0; i < num_elements; ++i) largest = std::max(largest, std::fabs(x[i]));
  const float scale = largest / outermost;
  for (std::int64_t i = 0; i < num_elements; ++i) {
    codes[i] = scale > 0.0f ? nearest_code(x[i] / scale, -outermost, outermost) : std::int16_t{0};
  }
  return {.scale = scale};
}

GroupScale round_asymmetric(const float* x, std::int64_t num_elements, int bits, std::int16_t* codes) {
  const auto most_code = static_cast<float>((1 << bits) - 1);
  const auto [low, high] = std::minmax_element(x, x + num_elements);
  // The range of two finite numbers may not be one.
  const float scale = *high / most_code - *low / most_code;
  for (std::int64_t i = 0; i < num_elements; ++i) {
    codes[i] = scale > 0.0f ? nearest_code((x[i] - *low) / scale, 0.0f, most_code) : std::int16_t{0};
  }
  return {.scale = scale, .min = *low};
}

}  // namespace kvasir::quant
