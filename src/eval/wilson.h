// Wilson's interval of 95% for a share (Wilson 1927).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace kvasir::eval {

struct WilsonInterval {
  double low = 0.0, high = 0.0;
};

// Of `num_hits` among `num_items`; of no items both ends are 0.
inline WilsonInterval wilson_interval(std::int32_t num_hits, std::int32_t num_items) {
  constexpr double kZ = 1.959963984540054;
  if (num_items == 0) return {};
  const double n = num_items, p = num_hits / n;
  const double scale = 1.0 / (1.0 + kZ * kZ / n);
  const double centre = scale * (p + kZ * kZ / (2.0 * n));
  const double half = scale * kZ * std::sqrt(p * (1.0 - p) / n + kZ * kZ / (4.0 * n * n));
  return {.low = std::max(0.0, centre - half), .high = std::min(1.0, centre + half)};
}

}  // namespace kvasir::eval
