// Eight floats side by side. Sums add lane by lane and then in one order, so they are the same whatever the machine.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace kvasir::quant {

// Vectors of 32 bytes never cross a call: every function with them is inlined.
#pragma GCC diagnostic ignored "-Wpsabi"

inline constexpr int kLanes = 8;
using Lanes [[gnu::vector_size(4 * kLanes)]] = float;
inline constexpr Lanes kLaneNumbers = {0, 1, 2, 3, 4, 5, 6, 7};

// Its callers are compiled once more for AVX2, which the machine chooses when it has it. No instruction fuses a multiply
// and an add, so the bits are the same.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define KVASIR_FIT_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define KVASIR_FIT_CLONES
#endif

// Within such a function everything is inlined, or it would be the machine's least.
#define KVASIR_FIT_INLINE [[gnu::always_inline]] inline

KVASIR_FIT_INLINE Lanes lanes_at(const float* x) {
  Lanes lanes;
  std::memcpy(&lanes, x, sizeof lanes);
  return lanes;
}

KVASIR_FIT_INLINE Lanes all_lanes(float value) { return Lanes{} + value; }

KVASIR_FIT_INLINE float sum_of(const Lanes& v) {
  return ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]));
}

// To nearest even, and then into [low, high], which are whole numbers below 2^22. Beside kShift no fraction is left, and
// floats of one sign compare as their bits do.
KVASIR_FIT_INLINE Lanes rounded_into(Lanes v, float low, float high) {
  using Integers [[gnu::vector_size(4 * kLanes)]] = std::int32_t;
  constexpr float kShift = 12582912.0f;  // 1.5 * 2^23
  const Lanes shifted = v + kShift;
  Integers bits;
  std::memcpy(&bits, &shifted, sizeof bits);
  const Integers lows = Integers{} + std::bit_cast<std::int32_t>(kShift + low), highs = Integers{} + std::bit_cast<std::int32_t>(kShift + high);
  bits = bits < lows ? lows : bits;
  bits = bits > highs ? highs : bits;
  Lanes found;
  std::memcpy(&found, &bits, sizeof found);
  return found - kShift;
}

// Whole numbers from -128 to 255 as bytes. The compiler would convert them one by one.
KVASIR_FIT_INLINE void put_bytes(Lanes v, void* bytes) {
  using Integers [[gnu::vector_size(4 * kLanes)]] = std::int32_t;
  using Bytes [[gnu::vector_size(2 * kLanes)]] = std::uint8_t;
  static_assert(std::endian::native == std::endian::little);
  const Integers integers = __builtin_convertvector(v, Integers);
  Bytes halves[2];
  std::memcpy(halves, &integers, sizeof integers);
  const auto low_bytes = __builtin_shufflevector(halves[0], halves[1], 0, 4, 8, 12, 16, 20, 24, 28);
  static_assert(sizeof low_bytes == kLanes);
  std::memcpy(bytes, &low_bytes, sizeof low_bytes);
}

}  // namespace kvasir::quant
