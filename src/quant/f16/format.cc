#include "quant/f16/format.h"

#include <cstring>

#include "quant/fit/lanes.h"

namespace kvasir::quant {
namespace {

using Halves [[gnu::vector_size(2 * kLanes)]] = std::uint16_t;
using Bits [[gnu::vector_size(4 * kLanes)]] = std::uint32_t;
using Signed [[gnu::vector_size(4 * kLanes)]] = std::int32_t;

// half_to_float of each.
KVASIR_FIT_INLINE Bits floats_of(const Halves& halves) {
  const Bits bits = __builtin_convertvector(halves, Bits), magnitude = (bits & 0x7fffu) << 13;
  const Lanes subnormals = __builtin_convertvector(reinterpret_cast<Signed>(bits & 0x3ffu), Lanes) * 0x1p-24f;
  const Bits large = magnitude + 0x38000000u, endless = magnitude | 0x7f800000u;
  const Bits normal = magnitude >= 0x0f800000u ? endless : large;
  return (bits & 0x8000u) << 16 | (magnitude < 0x00800000u ? reinterpret_cast<Bits>(subnormals) : normal);
}

}  // namespace

KVASIR_FIT_CLONES void F16::unpack_row(const void* row, std::int64_t num_elements, float* out) {
  const auto* bytes = static_cast<const std::byte*>(row);
  std::int64_t i = 0;
  for (; i + kLanes <= num_elements; i += kLanes) {
    Halves halves;
    std::memcpy(&halves, bytes + 2 * i, sizeof halves);
    const Bits floats = floats_of(halves);
    std::memcpy(out + i, &floats, sizeof floats);
  }
  for (; i < num_elements; ++i) out[i] = half_to_float(block_at<Half>(row, i));
}

}  // namespace kvasir::quant
