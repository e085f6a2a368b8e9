// Counting bits on machines whose baseline has no instruction for it.
#pragma once

#include <cstdint>

namespace kvasir::grammar {

// std::popcount calls a library function there. By sums of neighbours (Warren, "Hacker's Delight", 2012, 5-1).
constexpr std::uint32_t bit_count(std::uint64_t word) {
  word -= word >> 1 & 0x5555555555555555;
  word = (word & 0x3333333333333333) + (word >> 2 & 0x3333333333333333);
  word = (word + (word >> 4)) & 0x0F0F0F0F0F0F0F0F;
  return static_cast<std::uint32_t>(word * 0x0101010101010101 >> 56);
}

}  // namespace kvasir::grammar
