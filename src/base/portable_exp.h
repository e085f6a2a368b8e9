// An exponential that has the same bits on every machine, which the C library's has not.
#pragma once

#include <bit>
#include <cstdint>

namespace kvasir {

// e^x for |x| < 700, relative error below 1e-14.
// x = n ln 2 + r with |r| <= ln 2 / 2; e^r by its Taylor polynomial.
constexpr double portable_exp(double x) {
  constexpr double kLog2E = 1.4426950408889634;
  constexpr double kLn2High = 6.93147180369123816490e-01;  // few bits: n * kLn2High is exact
  constexpr double kLn2Low = 1.90821492927058770002e-10;
  const double scaled = x * kLog2E;
  const auto n = static_cast<std::int64_t>(scaled + (scaled < 0.0 ? -0.5 : 0.5));
  const auto whole = static_cast<double>(n);
  const double r = (x - whole * kLn2High) - whole * kLn2Low;
  double polynomial = 1.0;
  for (int k = 13; k >= 1; --k) polynomial = 1.0 + r * polynomial / k;
  return polynomial * std::bit_cast<double>(static_cast<std::uint64_t>(n + 1023) << 52);
}

}  // namespace kvasir
