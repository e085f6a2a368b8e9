// The cells that one block of a layer group has, and the format they are written in.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/table.h"
#include "kv/cells/cell.h"

namespace kvasir::backend {

using kernels::kMaxHeadDim;
using kv::KvFormat;

// A block is 16 tokens of every layer of one group: a cell per layer and KV head. Where layers take turns in
// the memory of one, it is 16 tokens of whichever layer runs: a cell per KV head.
struct KvLayout {
  KvFormat format = KvFormat::kF16;  // of new cells
  std::int32_t num_layers = 0;       // of the group; 1 where layers take turns
  std::int32_t num_kv_heads = 0;
  std::int32_t head_dim = 0;

  std::int32_t cells_per_block() const { return num_layers * num_kv_heads; }
  std::int32_t cell(std::int32_t layer, std::int32_t head) const {
    return num_layers == 1 ? head : layer * num_kv_heads + head;
  }
  std::int64_t cell_bytes() const { return kv::cell_bytes(format, head_dim); }
  std::int64_t block_bytes() const { return cells_per_block() * cell_bytes(); }
};

}  // namespace kvasir::backend
