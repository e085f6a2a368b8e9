// Tables of the integers that 16 nibbles stand for, where these are no neighbours.
#pragma once

#include <cstdint>

namespace kvasir::quant {

// The integers of IQ4_NL and IQ4_XS, each + kIq4Zero: the levels of llama.cpp's non-linear 4-bit formats.
inline constexpr int kIq4Zero = 128;
inline constexpr std::uint8_t kIq4Codes[16] = {1,   24,  45,  63,  79,  93,  106, 118,
                                               129, 141, 153, 166, 181, 197, 217, 241};

// Twice the E2M1 numbers 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives, each + kE2m1Zero.
inline constexpr int kE2m1Zero = 128;
inline constexpr std::uint8_t kE2m1Codes[16] = {128, 129, 130, 131, 132, 134, 136, 140,
                                                128, 127, 126, 125, 124, 122, 120, 116};

}  // namespace kvasir::quant
