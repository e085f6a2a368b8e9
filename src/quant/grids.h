// The grids of the IQ2 and IQ3 formats: which magnitudes the elements behind an index have. Part of GGUF's definition.
#pragma once

#include <bit>
#include <cstdint>

namespace kvasir::quant {

// The code that stands for zero in a format with signs of its own.
inline constexpr int kSignedZero = 128;

// An entry has the numbers of its elements' magnitudes, the first one lowest: eight of 2 bits, or four of 4 bits.
extern const std::uint16_t kIq2XxsGrid[256];
extern const std::uint16_t kIq2XsGrid[512];
extern const std::uint16_t kIq2SGrid[1024];
extern const std::uint16_t kIq3XxsGrid[256];
extern const std::uint16_t kIq3SGrid[512];

inline constexpr std::uint8_t kIq2Magnitudes[4] = {8, 25, 43};
inline constexpr std::uint8_t kIq3XxsMagnitudes[8] = {4, 12, 20, 28, 36, 44, 52, 62};
inline constexpr std::uint8_t kIq3SMagnitudes[8] = {1, 3, 5, 7, 9, 11, 13, 15};

// Eight sign bits of seven: the last makes their number even.
inline unsigned signs_of(std::uint32_t seven) {
  seven &= 127;
  return seven | static_cast<unsigned>(std::popcount(seven) & 1) << 7;
}

// Writes the codes of an entry's elements; element i is negative where bit i of `signs` is set.
template <int kElements>
void put_signed(std::uint16_t entry, const std::uint8_t* magnitudes, unsigned signs, std::uint8_t* codes) {
  constexpr int kBits = 16 / kElements;
  for (int i = 0; i < kElements; ++i) {
    const int magnitude = magnitudes[entry >> kBits * i & ((1 << kBits) - 1)];
    codes[i] = static_cast<std::uint8_t>(kSignedZero + ((signs >> i & 1) != 0 ? -magnitude : magnitude));
  }
}

}  // namespace kvasir::quant
