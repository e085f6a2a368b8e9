// A KV policy's view of a sequence, and its decision which cells become coarser.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "kv/cells/cell_store.h"
#include "kv/cells/sequence_scores.h"
#include "kv/policy/action_reason.h"
#include "kvasir/ids.h"

namespace kvasir::kv {

class KvPolicy;
struct ForecastNetwork;
struct ServedForecast;

// Cells [begin, end), counted through all groups without a window.
struct CellRange {
  std::int32_t begin = 0;
  std::int32_t end = 0;
};

// How one request wants its KV treated. Without a policy nothing is lossy.
struct KvPolicySettings {
  const KvPolicy* policy = nullptr;
  double budget_share = 1.0;
  std::int64_t budget_bytes = 0;  // for all layers without a window together; 0: no such limit
  // The most attention that a later query may be expected to pay to what was dropped, in each layer and head:
  // whatever would go beyond stays, and the budget with it. Only for policies that forecast.
  double max_lost_share = 1.0;
  std::uint64_t seed = 0;           // of policies that draw lots
  std::int32_t only_at_tokens = 0;  // > 0: acts once, when so many tokens are computed (evaluation)
  CellRange only_cells = {};        // alone are touched where they are any (calibration)
  // While the prompt is read the share is of what is read, and not of the whole prompt (evaluation).
  bool is_share_of_present = false;
  // The version of the adapter that the model runs with: keys and values of another one are others. 0: it runs without.
  std::uint64_t weights_version = 0;
  // The forecast of policies that learn, as long as the sequence lives; null: the cache's own.
  std::shared_ptr<const ServedForecast> forecast = nullptr;
  std::shared_ptr<const KvPolicy> own_policy = nullptr;  // `policy`, where it is this sequence's alone

  bool is_lossy() const;
  // The share of this KV's bytes in f16 that the policy is expected to keep: all of it where it has no
  // budget.
  double expected_share(std::int64_t bytes_in_f16) const;
};

// The loss of attention to a cell of a format, in any unit.
struct FormatCosts {
  std::array<float, kNumKvFormats> of = {};  // by format; below 0: the model shall not use it

  constexpr float operator[](KvFormat format) const { return of[static_cast<std::size_t>(format)]; }
  constexpr float& operator[](KvFormat format) { return of[static_cast<std::size_t>(format)]; }
};

// For a model without a calibration: the costs of SmolLM2-135M. A drop costs three times the attention that
// it loses: no forecast knows which block will be asked for.
constexpr FormatCosts usual_format_costs() {
  FormatCosts costs;
  costs[KvFormat::kQ8] = 0.002f;
  costs[KvFormat::kK8V4] = 0.006f;
  costs[KvFormat::kK4cV4] = 0.024f;
  costs[KvFormat::kK4V4] = 0.06f;
  costs[KvFormat::kK4cV3] = 0.035f;
  costs[KvFormat::kK4V3] = 0.075f;
  costs[KvFormat::kK3cV3] = 0.18f;
  costs[KvFormat::kK3V3] = 0.42f;
  costs[KvFormat::kK4V2] = 0.19f;
  costs[KvFormat::kK3cV2] = 0.28f;
  costs[KvFormat::kK3V2] = 0.47f;
  costs[KvFormat::kK2pV2] = -1.0f;  // it needs statistics of the model's keys
  costs[KvFormat::kGone] = 3.0f;
  return costs;
}

// The bytes of a cell of a sequence with a policy besides its keys and values: its place and its scores.
inline constexpr std::int64_t kBookkeepingBytesPerCell = sizeof(KvCellRef) + SequenceScores::kBytesPerCell;
static_assert(kBookkeepingBytesPerCell <= 16);

// The cells of one sequence in one layer group without a window.
struct PolicyView {
  const CellStore& cells;
  const KvPolicySettings& settings;
  const FormatCosts& costs;
  std::int32_t group = 0;
  std::int64_t budget_bytes_per_cell = 0;  // settings.budget_bytes shared out over layers and heads
  std::span<const BlockId> blocks;         // by logical index; kHole where a block is gone
  std::int32_t num_full_blocks = 0;        // blocks of which every token is computed
  std::int32_t num_prompt_blocks = 0;      // of which every token is the prompt's
  std::int32_t num_budget_blocks = 0;      // that the share is of, where there are fewer yet
  const SequenceScores* scores = nullptr;  // where the policy has a memory
  // For each cell: how much the model suffers when attention to it is wrong. Empty: all alike.
  std::span<const float> cell_weights = {};
  const ForecastNetwork* network = nullptr;  // null: nothing was learned of the model
  std::int32_t num_computed_tokens = 0;      // with those of a block that is not full

  std::int32_t num_blocks() const { return static_cast<std::int32_t>(blocks.size()); }
  std::int32_t num_cells() const { return cells.cells_per_block(group); }
  bool is_held(std::int32_t block) const { return blocks[static_cast<std::size_t>(block)] != kHole; }
  KvFormat format(std::int32_t block, std::int32_t cell) const {
    if (!is_held(block)) return KvFormat::kGone;
    return cells.at(group, blocks[static_cast<std::size_t>(block)], cell).format();
  }
  float weight_of(std::int32_t cell) const {
    return cell_weights.empty() ? 1.0f : cell_weights[static_cast<std::size_t>(cell)];
  }
  // Whether cells of the group can have the format, at whatever cost.
  bool can_have(KvFormat format) const {
    return supports(format, cells.head_dim(group)) && (!has_key_components(format) || cells.has_key_bases(group));
  }
  std::int64_t bytes(KvFormat format) const { return cell_bytes(format, cells.head_dim(group)); }
  std::int64_t new_cell_bytes() const { return bytes(cells.new_cells()); }
  // Queries that have seen a full block so far; of those that filled it about half.
  std::int32_t num_later_queries(std::int32_t block) const {
    return (num_full_blocks - 1 - block) * kTokensPerBlock + kTokensPerBlock / 2;
  }
  // Bytes of keys and values that the budget leaves for the blocks of one cell, shared out evenly.
  std::int64_t allowed_bytes() const {
    std::int64_t allowed = std::int64_t{1} << 50;  // more than any memory has; sums of it do not overflow
    if (settings.budget_share < 1.0) {
      const auto in_f16 =
          static_cast<double>(std::max(num_blocks(), num_budget_blocks) * bytes(KvFormat::kF16));
      allowed = static_cast<std::int64_t>(settings.budget_share * in_f16);
    }
    if (budget_bytes_per_cell > 0) allowed = std::min(allowed, budget_bytes_per_cell);
    return allowed - num_blocks() * kBookkeepingBytesPerCell;
  }
  std::int64_t present_bytes(std::int32_t cell) const {
    std::int64_t sum = 0;
    for (std::int32_t b = 0; b < num_blocks(); ++b) sum += bytes(format(b, cell));
    return sum;
  }
};

inline constexpr float kNoForecast = std::numeric_limits<float>::quiet_NaN();

// A cell that shall become coarser, or go.
struct CellAction {
  std::int32_t block = 0;  // logical
  std::int32_t cell = 0;
  KvFormat to = KvFormat::kGone;
  ActionReason reason = ActionReason::kUnstated;
  // Attention that each later query is expected to pay to it, summed over the query heads of its KV head;
  // kNoForecast where the policy expects nothing in particular.
  float forecast = kNoForecast;
};

// Stateless: what it must remember of a sequence lives with the sequence. Thread safety: const methods may be
// called from any thread.
class KvPolicy {
 public:
  virtual ~KvPolicy() = default;
  virtual std::string_view name() const = 0;
  // The memory of attention that it needs.
  virtual AttentionMemory memory() const { return {}; }
  // Whether it aims at a share of the bytes; the others do what they do whatever the budget is.
  virtual bool has_budget() const { return true; }
  // Appends actions that bring the bytes of each layer and head to the budget, as far as the policy goes;
  // each cell at most once.
  virtual void plan(const PolicyView& view, std::vector<CellAction>& actions) const = 0;
};

inline bool KvPolicySettings::is_lossy() const {
  return policy != nullptr && (budget_share < 1.0 || budget_bytes > 0 || !policy->has_budget());
}

inline double KvPolicySettings::expected_share(std::int64_t bytes_in_f16) const {
  if (!is_lossy() || !policy->has_budget()) return 1.0;
  if (budget_bytes == 0) return budget_share;
  return std::min(budget_share, static_cast<double>(budget_bytes) / static_cast<double>(bytes_in_f16));
}

// Part of every prefix key: KV made under one policy, budget or format is never a hit under another.
std::uint64_t policy_fingerprint(const KvPolicySettings& settings, KvFormat new_cells);

// Blocks that stay: the first one, whose tokens take the attention that has nowhere to go (Xiao et al.,
// "Efficient Streaming Language Models with Attention Sinks", 2024), and those that 64 later queries have not
// seen yet.
inline constexpr std::int32_t kNumSinkBlocks = 1;
inline constexpr std::int32_t kNumGraceBlocks = 4;

}  // namespace kvasir::kv
