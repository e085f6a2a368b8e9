// One price for all layers and heads of a group: the cheapest steps down first, until the budget is kept.
//
// A step to a coarser format costs the head's weight x the attention that is expected x the extra loss of the
// format. A drop costs the weight x (that attention x the loss of a drop + the chance of being asked x what a
// wrong drop does). So the chance of being asked buys a block its stay, but no bits: those go where attention
// is. A chance that was learned buys bits as well. Of equal steps the oldest block's goes first, one by one.
//
// A forecast only orders steps. What it cannot do, whatever it says:
// - The first block, those that 64 queries have not seen and those with massive values are not dropped.
// - Nothing is dropped as long as a format with a tolerable loss would do for all. Formats with keys in components are for
//   budgets that drop, and the first block has none of them.
// - No head is left with less than 2.5% of its bytes in f16, or half of the budget where that is less.
// - Dropped blocks had no more than KvPolicySettings::max_lost_share of a head's attention.
// - A head whose forecast is no number counts as if all its blocks were alike.
//
// Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kv/policy/block_forecast.h"
#include "kv/policy/formats.h"
#include "kv/policy/policy.h"

namespace kvasir::kv {

class PricedLadder {
 public:
  // The view must outlive it.
  explicit PricedLadder(const PolicyView& view);

  // Bytes beyond those allowed; below 0, what is left of them.
  std::int64_t excess_bytes() const { return excess_bytes_; }
  // The forecast of each cell in turn, before plan().
  void add_cell(const BlockForecast& forecast);
  void plan(std::vector<CellAction>& actions);

  // The cost of a plan is additive: the sum over full blocks of attention x loss, and of a drop's extra cost
  // where they are dropped. Behind plan(), for a block of a cell:
  struct BlockCost {
    double attention = 0.0;   // that is expected, times the head's weight
    double extra = 0.0;       // what a drop costs beyond, for the chance that the block is asked for
    double loss = 0.0;        // of attention, in the format that is planned
    bool is_dropped = false;

    double cost() const { return attention * loss + (is_dropped ? extra : 0.0); }
  };
  BlockCost cost_of(std::int32_t block, std::int32_t cell) const;

 private:
  struct Block {
    float attention = 0.0f;
    float asked_cost = 0.0f;  // what a drop costs beyond its attention
    std::uint8_t rung = 0;    // kDropped where it is gone
    bool is_pinned = false;
  };
  struct Head {
    std::int64_t bytes = 0;                // that are left of the cell
    float remembered = 0.0f, lost = 0.0f;  // attention in memory, and that of blocks that are gone
    bool asked_buys_bits = false;
  };
  struct Step {
    float price;
    std::int32_t block, cell;
    bool is_drop;
  };
  static constexpr std::uint8_t kDropped = 0xff;
  static bool is_later(const Step& a, const Step& b);

  std::size_t index(std::int32_t block, std::int32_t cell) const {
    return static_cast<std::size_t>(cell) * static_cast<std::size_t>(view_.num_full_blocks) +
           static_cast<std::size_t>(block);
  }
  Head& head(std::int32_t cell) { return heads_[static_cast<std::size_t>(cell)]; }
  std::uint8_t rung_of(KvFormat format) const;
  void pin(std::int32_t cell);
  void measure_head(std::int32_t cell);
  bool propose(std::int32_t block, std::int32_t cell, bool with_drop);
  void propose_next(std::int32_t block, std::int32_t cell, bool with_drop);
  void take(const Step& step);
  bool may_ever_drop(std::int32_t block, std::int32_t cell);
  float format_price(const Block& block, std::int32_t cell) const;
  float drop_price(const Block& block, std::int32_t cell) const;

  const PolicyView& view_;
  std::vector<Rung> rungs_;  // without the drop
  float cost_of_drop_ = 0.0f;
  std::int64_t allowed_bytes_ = 0, excess_bytes_ = 0, least_bytes_ = 0;
  bool may_drop_ = false;
  std::int32_t num_cells_ = 0;  // so far
  std::vector<Block> blocks_;   // [cells, full blocks]
  std::vector<Head> heads_;     // by cell
  std::vector<Step> steps_;     // a heap: at most one of each block
};

}  // namespace kvasir::kv
