// The encoders by the kind of their blocks: fitted_format() knows them all.
#pragma once

#include <cstring>

#include "quant/block.h"
#include "quant/fit/fitted_format.h"

namespace kvasir::quant {

// What the formats of every kind share: blocks whose codes Layout::put_codes() writes.
template <class Layout>
class BlockFormat : public GridFormat {
 public:
  void put_codes(const std::uint8_t* indices, std::int64_t num_elements, std::byte* row) const final {
    using Format = typename Layout::Format;
    for (std::int64_t b = 0; b < num_elements / Format::kBlockElements; ++b, indices += Format::kBlockElements) {
      auto block = block_at<typename Format::Block>(row, b);
      Layout::put_codes(block, indices);
      std::memcpy(row + b * static_cast<std::int64_t>(sizeof block), &block, sizeof block);
    }
  }
};

// Null for types of another kind.
const GridFormat* short_block_format(DType dtype);
const GridFormat* super_block_format(DType dtype);
const FittedFormat* codebook_format(DType dtype);

}  // namespace kvasir::quant
