// Overflow-safe arithmetic for sizes that come from files and requests.
#pragma once

#include <concepts>
#include <optional>

namespace kvasir {

// Empty when the sum / product does not fit T.
template <std::integral T>
constexpr std::optional<T> checked_add(T a, T b) {
  T out;
  if (__builtin_add_overflow(a, b, &out)) return std::nullopt;
  return out;
}

template <std::integral T>
constexpr std::optional<T> checked_mul(T a, T b) {
  T out;
  if (__builtin_mul_overflow(a, b, &out)) return std::nullopt;
  return out;
}

template <std::integral T>
constexpr T ceil_div(T a, T b) {
  return (a + b - 1) / b;
}

}  // namespace kvasir
