// A natural logarithm that has the same bits on every machine, which the C library's has not.
#pragma once

#include <bit>
#include <cstdint>

namespace kvasir {

// ln x for a normal x > 0, relative error below 1e-15.
// x = 2^n m with m from 0.70 to 1.41; ln m = 2 artanh s with s = (m - 1) / (m + 1), |s| < 0.172, by its Taylor polynomial.
constexpr double portable_log(double x) {
  constexpr double kLn2High = 6.93147180369123816490e-01;  // few bits: n * kLn2High is exact
  constexpr double kLn2Low = 1.90821492927058770002e-10;
  constexpr std::uint64_t kOne = std::uint64_t{1023} << 52;
  constexpr std::uint64_t kSplit = 0x3FE6A09E00000000u;  // a little below the root of 1/2: the least m
  const std::uint64_t shifted = std::bit_cast<std::uint64_t>(x) + (kOne - kSplit);
  const auto n = static_cast<double>(static_cast<std::int64_t>(shifted >> 52) - 1023);
  const double f = std::bit_cast<double>((shifted & ((std::uint64_t{1} << 52) - 1)) + kSplit) - 1.0;
  const double s = f / (2.0 + f);
  const double square = s * s;
  double tail = 1.0 / 21.0;
  for (int k = 19; k >= 3; k -= 2) tail = tail * square + 1.0 / k;
  // 2 s = f - f s, whose rounding is f's share alone.
  return n * kLn2High + (f - (s * (f - 2.0 * square * tail) - n * kLn2Low));
}

}  // namespace kvasir
