// Four floats at a time, on any machine: the compilers' own vector type, in the 16 bytes every x86-64 and ARM
// has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace kvasir::sampling {

using Float4 = float __attribute__((vector_size(16)));
using Int4 = std::int32_t __attribute__((vector_size(16)));
using Uint4 = std::uint32_t __attribute__((vector_size(16)));

inline constexpr std::size_t kLanes = 4;

inline Float4 broadcast(float value) { return Float4{value, value, value, value}; }

inline Float4 load4(const float* values) {
  Float4 out;
  std::memcpy(&out, values, sizeof out);
  return out;
}

}  // namespace kvasir::sampling
