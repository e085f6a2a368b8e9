// Numbers of characters of texts.
#pragma once

#include <algorithm>
#include <cstdint>

namespace kvasir::grammar {

inline constexpr std::uint32_t kMaxTextLength = 1'000'000'000;  // and more

constexpr std::uint32_t capped_length(std::uint64_t length) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(length, kMaxTextLength));
}

}  // namespace kvasir::grammar
