// Codes of 4 and 5 bits as the formats with blocks of 32 elements store them.
#pragma once

#include <cstdint>

namespace kvasir::quant {

// Byte i holds element i in its low nibble and element i + 16 in its high one.
inline void nibbles_of(const std::uint8_t* nibbles, std::uint8_t* codes) {
  for (int i = 0; i < 16; ++i) {
    codes[i] = nibbles[i] & 0x0f;
    codes[i + 16] = nibbles[i] >> 4;
  }
}

// Bit i of `high_bits` (little endian) is bit 4 of element i's code.
inline void add_fifth_bits(const std::uint8_t* high_bits, std::uint8_t* codes) {
  for (int i = 0; i < 32; ++i) codes[i] |= static_cast<std::uint8_t>((high_bits[i / 8] >> (i % 8) & 1) << 4);
}

}  // namespace kvasir::quant
