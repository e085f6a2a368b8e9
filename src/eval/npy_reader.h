// Reads whole numbers from a file in NumPy's .npy format.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kvasir/result.h"

namespace kvasir::eval {

struct NpyIntegers {
  std::vector<std::int64_t> values;
  std::int64_t row_length = 0;  // of two dimensions; 0: there is one
};

// Little-endian integers of 4 or 8 bytes, of one dimension or two, in C's order. Error (kBadFile): anything else.
Result<NpyIntegers> parse_npy_integers(std::string_view bytes);

}  // namespace kvasir::eval
