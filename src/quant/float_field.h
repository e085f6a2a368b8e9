// A floating-point number inside a block of weights.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>

#include "base/half.h"

namespace kvasir::quant {

enum class FloatKind : std::uint8_t {
  kF32,
  kF16,
  kBF16,
  kE8M0,   // a byte e is 2^(e - 127), and 255 is no number (OCP Microscaling Formats 1.0)
  kUE4M3,  // a byte without a sign: 4 bits of exponent with bias 7, 3 of mantissa, and 127 is no number
};

constexpr float e8m0_to_float(std::uint8_t bits) {
  if (bits == 255) return std::numeric_limits<float>::quiet_NaN();
  return bits == 0 ? 0x1p-127f : std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 23);
}

// Bit 7 counts for nothing.
constexpr float ue4m3_to_float(std::uint8_t bits) {
  const std::uint32_t exponent = bits >> 3 & 15, mantissa = bits & 7;
  if (exponent == 15 && mantissa == 7) return std::numeric_limits<float>::quiet_NaN();
  if (exponent == 0) return static_cast<float>(mantissa) * 0x1p-9f;
  return std::bit_cast<float>((exponent + 120) << 23 | mantissa << 20);
}

struct FloatField {
  std::int32_t byte = 0;  // in the block
  FloatKind kind = FloatKind::kF16;

  // Its value in the block at `block`, which needs no alignment.
  float value(const void* block) const {
    const char* at = static_cast<const char*>(block) + byte;
    if (kind == FloatKind::kF32) {
      float value;
      std::memcpy(&value, at, sizeof value);
      return value;
    }
    if (kind == FloatKind::kE8M0) return e8m0_to_float(static_cast<std::uint8_t>(*at));
    if (kind == FloatKind::kUE4M3) return ue4m3_to_float(static_cast<std::uint8_t>(*at));
    std::uint16_t bits;
    std::memcpy(&bits, at, sizeof bits);
    return kind == FloatKind::kBF16 ? bf16_to_float(bits) : half_to_float(bits);
  }
};

}  // namespace kvasir::quant
