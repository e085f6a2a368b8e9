// 8 and 16 bytes that are loaded and stored at once.
#pragma once

#include <cstdint>

namespace kvasir::simt {

struct alignas(8) Words2 {
  std::uint32_t x, y;
};
struct alignas(16) Words4 {
  std::uint32_t x, y, z, w;
};

}  // namespace kvasir::simt
