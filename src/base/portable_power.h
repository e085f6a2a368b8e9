// A power that has the same bits on every machine, which the C library's has not.
#pragma once

#include <cstdint>

namespace kvasir {

// base^exponent by squares. Requires: exponent >= 0.
constexpr double portable_power(double base, std::int64_t exponent) {
  double power = 1.0;
  for (double square = base; exponent > 0; exponent >>= 1, square *= square) {
    if (exponent & 1) power *= square;
  }
  return power;
}

}  // namespace kvasir
