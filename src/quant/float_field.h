// A floating-point number inside a block of weights.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/half.h"

namespace kvasir::quant {

enum class FloatKind : std::uint8_t { kF32, kF16, kBF16 };

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
    std::uint16_t bits;
    std::memcpy(&bits, at, sizeof bits);
    return kind == FloatKind::kBF16 ? bf16_to_float(bits) : half_to_float(bits);
  }
};

}  // namespace kvasir::quant
