// Formats before drops, by what a later query is expected to pay attention to (CellLadder).
//
// "ladder" first shares out the budget by the weight of each layer and head for the model, or evenly where
// that was not measured (cell_budgets.h). Then each takes the steps that lose the least per byte.
// "ladder-pooled" has one price for all: layers and heads whose attention is spread give to those that look
// far back. With the true attention of the future it would be the better one; with forecasts and this floor it
// has not been (PricedLadder has none).
//
// Nothing is dropped as long as the coarsest format would do: what a drop loses is bimodal, nothing or the
// one thing that is asked for, and no forecast knows which.
#include <algorithm>
#include <ranges>

#include "kv/policy/cell_budgets.h"
#include "kv/policy/cell_ladder.h"
#include "kv/policy/registry.h"

namespace kvasir::kv {
namespace {

class LadderPolicy final : public KvPolicy {
 public:
  std::string_view name() const override { return "ladder"; }
  AttentionMemory memory() const override { return CellLadder::memory(); }

  void plan(const PolicyView& view, std::vector<CellAction>& actions) const override {
    CellLadder ladder(view);
    const std::vector<std::int64_t> budgets = budgets_of_cells(view);
    for (std::int32_t cell = 0; cell < view.num_cells(); ++cell) {
      const std::int64_t excess_bytes = ladder.read(cell, budgets[static_cast<std::size_t>(cell)]);
      if (excess_bytes <= 0) continue;
      ladder.rank();
      ladder.pay(excess_bytes);
      ladder.finish(actions);
    }
  }
};

class PooledLadderPolicy final : public KvPolicy {
 public:
  std::string_view name() const override { return "ladder-pooled"; }
  AttentionMemory memory() const override { return CellLadder::memory(); }

  void plan(const PolicyView& view, std::vector<CellAction>& actions) const override {
    std::vector<CellLadder> ladders(static_cast<std::size_t>(view.num_cells()), CellLadder(view));
    std::int64_t excess_bytes = 0;
    for (std::int32_t cell = 0; cell < view.num_cells(); ++cell) {
      excess_bytes += ladders[static_cast<std::size_t>(cell)].read(cell, view.allowed_bytes());
    }
    if (excess_bytes <= 0) return;
    for (CellLadder& ladder : ladders) ladder.rank();
    pay(ladders, excess_bytes);
    for (CellLadder& ladder : ladders) ladder.finish(actions);
  }

 private:
  // Takes the cheapest steps of all until so many bytes are saved.
  static void pay(std::vector<CellLadder>& ladders, std::int64_t bytes) {
    const auto is_dearer = [](const CellLadder* a, const CellLadder* b) { return a->price() > b->price(); };
    std::vector<CellLadder*> by_price;  // a heap of those that have a step
    for (CellLadder& ladder : ladders) {
      if (ladder.has_step()) by_price.push_back(&ladder);
    }
    std::ranges::make_heap(by_price, is_dearer);
    while (bytes > 0 && !by_price.empty()) {
      std::ranges::pop_heap(by_price, is_dearer);
      bytes -= by_price.back()->take_step();
      if (by_price.back()->has_step()) {
        std::ranges::push_heap(by_price, is_dearer);
      } else {
        by_price.pop_back();
      }
    }
  }
};

}  // namespace

const KvPolicy& ladder_policy() {
  static const LadderPolicy policy;
  return policy;
}

const KvPolicy& pooled_ladder_policy() {
  static const PooledLadderPolicy policy;
  return policy;
}

}  // namespace kvasir::kv
