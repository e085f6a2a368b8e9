// The 8-bit floats of quantised checkpoints.
#pragma once

#include <bit>
#include <cstdint>

#include "quant/float_field.h"

namespace kvasir::quant {

// E4M3 with a sign: bias 7, no infinities, 0x7f and 0xff are no numbers (OCP OFP8).
constexpr float e4m3_to_float(std::uint8_t bits) {
  const float magnitude = ue4m3_to_float(bits & 0x7f);
  return (bits & 0x80) != 0 ? -magnitude : magnitude;
}

}  // namespace kvasir::quant
