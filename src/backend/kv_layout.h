// Where a (layer, KV head) cell lies inside a block of its layer group.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/table.h"

namespace kvasir::backend {

using kernels::kMaxHeadDim;
using kernels::KvFormat;

// A block holds 16 tokens of every layer of one group: [layer][KV head]{K cell [head_dim][16], V cell
// [16][head_dim]}.
struct KvLayout {
  KvFormat format = KvFormat::kF16;
  std::int32_t num_layers = 0;  // of the group
  std::int32_t num_kv_heads = 0;
  std::int32_t head_dim = 0;

  std::int64_t element_bytes() const { return format == KvFormat::kF16 ? 2 : 4; }
  std::int64_t half_cell_bytes() const {
    return std::int64_t{head_dim} * kernels::kTokensPerCell * element_bytes();
  }
  std::int64_t cell_bytes() const { return 2 * half_cell_bytes(); }
  std::int64_t block_bytes() const { return std::int64_t{num_layers} * num_kv_heads * cell_bytes(); }
  std::int64_t k_offset(std::int32_t layer, std::int32_t head) const {
    return (std::int64_t{layer} * num_kv_heads + head) * cell_bytes();
  }
  std::int64_t v_offset(std::int32_t layer, std::int32_t head) const {
    return k_offset(layer, head) + half_cell_bytes();
  }
};

}  // namespace kvasir::backend
