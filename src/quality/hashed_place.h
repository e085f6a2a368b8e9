// A place in [0, 1) that a hash gives to a name or a number.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kv/blocks/siphash.h"

namespace kvasir::quality {

inline double hashed_place(kv::SipKey key, std::span<const std::byte> bytes) {
  return std::ldexp(static_cast<double>(kv::SipHash(key).digest(bytes) >> 11), -53);
}

}  // namespace kvasir::quality
