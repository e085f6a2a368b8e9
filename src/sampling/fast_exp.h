// A single-precision exponential, four at a time.
#pragma once

#include <bit>

#include "sampling/float4.h"

namespace kvasir::sampling {

// e^x for x <= 0, relative error below 3e-7; 0 below -87 (where e^x leaves the normal numbers) and for -inf.
// x = n ln 2 + r with |r| <= ln 2 / 2; e^r by its Taylor polynomial of degree 6; 2^n by the exponent bits.
inline Float4 fast_exp(Float4 x) {
  const Float4 smallest = broadcast(-87.0f);
  constexpr float kLog2E = 1.44269504f;
  constexpr float kLn2High = 0.693359375f;  // few bits: n * kLn2High is exact
  constexpr float kLn2Low = -2.12194440e-4f;
  constexpr float kRounder = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  const Int4 too_small = x < smallest;
  const Float4 clamped = too_small ? smallest : x;
  const Float4 shifted = clamped * kLog2E + kRounder;
  const Float4 n = shifted - kRounder;
  const Float4 r = (clamped - n * kLn2High) - n * kLn2Low;
  Float4 polynomial = broadcast(1.0f / 720.0f);
  polynomial = polynomial * r + 1.0f / 120.0f;
  polynomial = polynomial * r + 1.0f / 24.0f;
  polynomial = polynomial * r + 1.0f / 6.0f;
  polynomial = polynomial * r + 0.5f;
  polynomial = polynomial * r + 1.0f;
  polynomial = polynomial * r + 1.0f;
  const Int4 exponent = (std::bit_cast<Int4>(shifted) - std::bit_cast<Int4>(broadcast(kRounder)) + 127) << 23;
  return too_small ? broadcast(0.0f) : polynomial * std::bit_cast<Float4>(exponent);
}

// The same value as in a vector.
inline float fast_exp(float x) { return fast_exp(broadcast(x))[0]; }

}  // namespace kvasir::sampling
