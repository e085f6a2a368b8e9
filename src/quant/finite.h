// Whether a row's floats are numbers, for any format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <type_traits>
#include <utility>

#include "quant/float_field.h"

namespace kvasir::quant {

template <FloatKind kKind>
using BitsOf = std::conditional_t<
    kKind == FloatKind::kF32, std::uint32_t,
    std::conditional_t<kKind == FloatKind::kF16 || kKind == FloatKind::kBF16, std::uint16_t, std::uint8_t>>;

// Branch-free over `count` values that lie kStride bytes apart, so that the compiler turns the dense case
// into vector code. An IEEE number is finite iff its exponent is not all ones; of E8M0 and UE4M3 one byte is no number.
template <FloatKind kKind, std::int64_t kStride>
bool all_finite(const char* values, std::int64_t count) {
  using Bits = BitsOf<kKind>;
  constexpr Bits kExponent = kKind == FloatKind::kF32     ? static_cast<Bits>(0x7f800000u)
                             : kKind == FloatKind::kF16   ? static_cast<Bits>(0x7c00u)
                             : kKind == FloatKind::kBF16  ? static_cast<Bits>(0x7f80u)
                             : kKind == FloatKind::kUE4M3 ? static_cast<Bits>(0x7fu)
                                                          : static_cast<Bits>(0xffu);
  Bits found = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    Bits bits;
    std::memcpy(&bits, values + i * kStride, sizeof bits);
    found |= static_cast<Bits>((bits & kExponent) == kExponent);
  }
  return found == 0;
}

// IsFiniteRow of a format.
template <class Format>
bool is_finite_row(const void* row, std::int64_t num_elements) {
  return [&]<std::size_t... kField>(std::index_sequence<kField...>) {
    return (all_finite<Format::kFloats[kField].kind, sizeof(typename Format::Block)>(
                static_cast<const char*>(row) + Format::kFloats[kField].byte,
                num_elements / Format::kBlockElements) &&
            ...);
  }
  (std::make_index_sequence<std::size(Format::kFloats)>());
}

}  // namespace kvasir::quant
