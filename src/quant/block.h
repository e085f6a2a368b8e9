// Blocks of the GGUF weight formats as they lie in a file.
//
// A row is a sequence of blocks. Blocks are packed without padding, so one may start at any address: read it
// with block_at, never through a cast.
#pragma once

#include <cstdint>
#include <cstring>

namespace kvasir::quant {

inline constexpr int kCodesOfBlock = 32;  // that codes_of writes at a time
inline constexpr int kSuperBlockElements = 256;

using Half = std::uint16_t;  // bits of an IEEE binary16

// Block `index` of a row in file layout.
template <class Block>
Block block_at(const void* row, std::int64_t index) {
  Block block;
  std::memcpy(&block, static_cast<const char*>(row) + index * static_cast<std::int64_t>(sizeof(Block)),
              sizeof(Block));
  return block;
}

}  // namespace kvasir::quant
