// How the numbers of adapters are kept.
#pragma once

#include <cstdint>

namespace kvasir {

enum class AdapterType : std::uint8_t {
  kF16,   // halves; floats beside matrices in F32
  kInt8,  // a byte each, and a scale for each row of both matrices
};

}  // namespace kvasir
