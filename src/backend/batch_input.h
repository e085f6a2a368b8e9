// One step's work as the model sees it: ragged rows of tokens and where their KV lives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/kv_layout.h"
#include "backend/tensors.h"
#include "kv/cells/attention_scores.h"
#include "kvasir/ids.h"

namespace kvasir::backend {

// Consecutive tokens of one sequence: rows [first_row, first_row + num_rows) of the batch at absolute
// positions first_position, first_position + 1, ...
struct BatchSequence {
  std::int32_t first_row = 0;
  std::int32_t num_rows = 0;
  std::int32_t first_position = 0;
  std::int32_t num_wanted_rows = 0;  // the last so many want logits
  kv::QueryWeights observed;         // whose attention is reported by block
  // The last so many rows are guesses, which may not count. The attention of an observed slice with guesses
  // is reported row by row.
  std::int32_t num_draft_rows = 0;
  ScaledAdapter adapter = {};

  std::int32_t num_reported_rows() const { return num_draft_rows > 0 ? num_rows : 1; }
};

// The KV of one layer group for this step.
struct KvGroupView {
  static constexpr std::int32_t kAllAhead = 1 << 29;  // longer than any text, and a sum of two is an int32

  KvLayout layout;
  std::int32_t window = 0;  // 0: every earlier token
  std::int32_t ahead = 0;   // tokens behind its own that a row sees, kAllAhead: every one. They must be in the batch
  kv::CellDirectory directory;
  std::byte* memory = nullptr;  // that the directory's references count from
  const kv::KeyBasis* key_bases = nullptr;  // by cell; null: no cell has keys in components
  // Per sequence slice: its blocks by logical index (position / 16); kHole where a block is gone.
  std::vector<std::span<const BlockId>> blocks;

  // The cells of a sequence slice for one layer of the group and one KV head.
  kv::KvCellMap cells(std::int32_t sequence, std::int32_t layer, std::int32_t head) const {
    return {.blocks = blocks[static_cast<std::size_t>(sequence)].data(),
            .refs = directory.of_cell(layout.cell(layer, head)),
            .memory = memory};
  }
  const kv::KeyBasis* basis_of(std::int64_t cell) const { return key_bases == nullptr ? nullptr : key_bases + cell; }
};

// Borrowed by the model for one forward pass. Invariants: slices are in row order without gaps; every
// position of a slice has a block in every group.
struct BatchInput {
  std::span<const TokenId> token_ids;         // [num_rows]
  std::span<const std::uint8_t> token_types;  // [num_rows] or empty: all 0
  std::span<const BatchSequence> sequences;
  std::span<const KvGroupView> kv_groups;  // as ModelConfig::layer_groups
  bool runs_all_layers = true;             // false: layers take turns, and this step has some of them

  std::int32_t num_rows() const { return static_cast<std::int32_t>(token_ids.size()); }
};

}  // namespace kvasir::backend
