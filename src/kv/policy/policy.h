// What a KV policy sees of a sequence, and what it says shall become coarser.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "kv/cell_store.h"
#include "kvasir/ids.h"

namespace kvasir::kv {

// The cells of one sequence in one layer group without a window.
struct PolicyView {
  const CellStore& cells;
  std::int32_t group = 0;
  std::span<const BlockId> blocks;   // by logical index; kHole where a block is gone
  std::int32_t num_full_blocks = 0;  // blocks of which every token is computed

  std::int32_t num_blocks() const { return static_cast<std::int32_t>(blocks.size()); }
  std::int32_t num_cells() const { return cells.cells_per_block(group); }
  bool is_held(std::int32_t block) const { return blocks[static_cast<std::size_t>(block)] != kHole; }
  KvFormat format(std::int32_t block, std::int32_t cell) const {
    return cells.at(group, blocks[static_cast<std::size_t>(block)], cell).format();
  }
};

// A cell that shall become coarser, or go.
struct CellAction {
  std::int32_t block = 0;  // logical
  std::int32_t cell = 0;
  KvFormat to = KvFormat::kGone;
};

// Stateless: what it must remember of a sequence lives with the sequence. Thread safety: const methods may be
// called from any thread.
class KvPolicy {
 public:
  virtual ~KvPolicy() = default;
  virtual std::string_view name() const = 0;
  // Appends actions that bring the bytes of the view to `budget_share` of what the same cells take in f16, as
  // far as the policy goes; each cell at most once, and never to a finer format.
  virtual void plan(const PolicyView& view, double budget_share, std::vector<CellAction>& actions) const = 0;
};

// How one request wants its KV treated. Without a policy nothing is lossy.
struct KvPolicySettings {
  const KvPolicy* policy = nullptr;
  double budget_share = 1.0;

  bool is_lossy() const { return policy != nullptr && budget_share < 1.0; }
};

// Part of every prefix key: KV made under one policy, budget or format is never a hit under another.
std::uint64_t policy_fingerprint(const KvPolicySettings& settings, KvFormat new_cells);

// Blocks that stay as they are: the first one, whose tokens take the attention that has nowhere to go (Xiao
// et al., "Efficient Streaming Language Models with Attention Sinks", 2024), and those that 64 later queries
// have not seen yet.
inline constexpr std::int32_t kNumSinkBlocks = 1;
inline constexpr std::int32_t kNumGraceBlocks = 4;

}  // namespace kvasir::kv
