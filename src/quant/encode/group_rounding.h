// Rounding to the nearest of evenly spaced levels, of any width and group size. It is no file type: others measure with it.
#pragma once

#include <cstdint>

namespace kvasir::quant {

// value = scale * code + min.
struct GroupScale {
  float scale = 0.0f, min = 0.0f;
};

// Writes a code for each of `num_elements` numbers that share their scale. Halves go to the even code. Requires: finite
// numbers, 1 <= bits <= 8, num_elements >= 1.
//
// Symmetric: codes -m .. m with m = 2^(bits-1) - 1, the largest magnitude at m, min 0. One bit: codes -1 and 1, and the
// scale is the mean magnitude. A group of zeros has scale 0.
GroupScale round_symmetric(const float* x, std::int64_t num_elements, int bits, std::int16_t* codes);
// Codes 0 .. 2^bits - 1 from the least number to the largest. A group of equal numbers has scale 0 and them as its min.
GroupScale round_asymmetric(const float* x, std::int64_t num_elements, int bits, std::int16_t* codes);

}  // namespace kvasir::quant
