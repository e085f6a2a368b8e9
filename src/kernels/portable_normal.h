// Nearly normal random numbers that are the same on every machine: the standard library's go through the
// logarithm of whatever math library is there.
#pragma once

#include <cstdint>
#include <random>

namespace kvasir::kernels {

// Mean 0, deviation 1: the sum of twelve even numbers of 16 bits, exact in float32.
class PortableNormal {
 public:
  float operator()(std::mt19937& random) const {
    std::int32_t sum = 0;
    for (int i = 0; i < 6; ++i) {
      const auto bits = static_cast<std::uint32_t>(random());
      sum += static_cast<std::int32_t>(bits & 0xffff) + static_cast<std::int32_t>(bits >> 16);
    }
    return static_cast<float>(sum - 6 * 0xffff) * 0x1p-16f;
  }
};

}  // namespace kvasir::kernels
