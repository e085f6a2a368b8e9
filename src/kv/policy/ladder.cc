// Formats before drops, by what a later query is expected to pay attention to.
//
// In each layer and head alone, the step down that loses the least per byte comes first: loss = forecast
// attention x what the coarser format loses of it. Nothing is dropped as long as the coarsest format but one
// would do for all blocks: what a drop loses is bimodal, nothing or the one thing that is asked for, and no
// forecast knows which. The forecast is attention with a memory of about 200
// queries, never less than what the block's keys promise by being unlike the others (KeyDiff): text that
// nobody has asked about yet looks like nothing in attention.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "kv/policy/formats.h"
#include "kv/policy/registry.h"

namespace kvasir::kv {
namespace {

constexpr float kDecay = 0.995f;
constexpr float kLeastForecast = 1e-9f;
// Queries that have seen a block's tokens by the time it is full, on average.
constexpr float kQueriesWhileFilling = 8.0f;
// The floor of a block whose keys are the most unlike the others', in means of the forecast, and how fast it
// falls with the rank of the block.
constexpr float kFloorMeans = 3.0f;
constexpr float kFloorPower = 4.0f;

// One layer and head of a sequence.
class CellLadder {
 public:
  explicit CellLadder(const PolicyView& view)
      : view_(view),
        rungs_(ladder_of(view)),
        forecast_(static_cast<std::size_t>(view.num_full_blocks)),
        rung_of_(forecast_.size()),
        order_(forecast_.size()),
        may_drop_(rungs_.size() > 2 &&
                  view.allowed_bytes() < view.num_blocks() * rungs_[rungs_.size() - 3].bytes) {}

  void plan(std::int32_t cell, std::vector<CellAction>& actions) {
    std::int64_t bytes = view_.present_bytes(cell) - view_.allowed_bytes();
    if (bytes <= 0) return;
    read_formats(cell);
    forecast(cell);
    steps_.clear();
    for (std::size_t b = 0; b < rung_of_.size(); ++b) propose(b);
    std::ranges::make_heap(steps_, is_later);
    while (bytes > 0 && !steps_.empty()) {
      std::ranges::pop_heap(steps_, is_later);
      const std::size_t block = steps_.back().block;
      steps_.pop_back();
      bytes -= take_step(block);
    }
    for (std::size_t b = 0; b < rung_of_.size(); ++b) {
      if (rung_of_[b] == 0) continue;
      const auto block = static_cast<std::int32_t>(b);
      const KvFormat to = rungs_[rung_of_[b]].format;
      const KvFormat present = view_.format(block, cell);
      if (!is_coarser(to, present)) continue;
      actions.push_back({block, cell, to, ActionReason::kLeastLossPerByte, (1.0f - kDecay) * forecast_[b]});
    }
  }

 private:
  struct Step {
    float loss_per_byte;
    std::size_t block;
  };
  // Of two steps that lose alike the older block's comes first.
  static bool is_later(const Step& a, const Step& b) {
    return a.loss_per_byte != b.loss_per_byte ? a.loss_per_byte > b.loss_per_byte : a.block > b.block;
  }

  void read_formats(std::int32_t cell) {
    for (std::size_t b = 0; b < rung_of_.size(); ++b) {
      const KvFormat present = view_.format(static_cast<std::int32_t>(b), cell);
      std::size_t rung = 0;
      while (is_coarser(present, rungs_[rung].format)) ++rung;
      rung_of_[b] = rung;
    }
  }

  // Attention per query of the long run, for each full block.
  void forecast(std::int32_t cell) {
    const std::span<const float> masses = view_.scores->masses(cell);
    total_ = lost_ = 0.0f;
    for (std::size_t b = 0; b < forecast_.size(); ++b) {
      const float mass = b < masses.size() ? masses[b] : 0.0f;
      total_ += std::abs(mass);
      if (mass < 0.0f) lost_ -= mass;
      // What few queries have seen counts as if the others were like them.
      const auto queries = static_cast<float>((forecast_.size() - 1 - b) * kTokensPerBlock);
      const float seen = 1.0f - std::pow(kDecay, queries + kQueriesWhileFilling);
      forecast_[b] = std::max(mass, 0.0f) / seen;
    }
    raise_to_floor(cell);
  }

  void raise_to_floor(std::int32_t cell) {
    const std::span<const float> distinctness = view_.scores->statistics(cell);
    const std::size_t count = std::min(forecast_.size(), distinctness.size());
    order_.resize(count);
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::ranges::sort(order_, {}, [&](std::size_t b) { return distinctness[b]; });
    const float mean = std::accumulate(forecast_.begin(), forecast_.end(), 0.0f) /
                       static_cast<float>(std::max<std::size_t>(1, forecast_.size()));
    std::size_t rank = 0;  // how many are less distinct
    for (std::size_t i = 0; i < count; ++i) {
      if (distinctness[order_[i]] > distinctness[order_[rank]]) rank = i;
      const float height = std::pow(static_cast<float>(rank) / static_cast<float>(count), kFloorPower);
      float& forecast = forecast_[order_[i]];
      forecast = std::max(forecast, kFloorMeans * mean * height);
    }
    for (float& forecast : forecast_) forecast = std::max(forecast, kLeastForecast);
  }

  bool may_drop(std::size_t block) const {
    if (!may_drop_) return false;
    const auto b = static_cast<std::int32_t>(block);
    if (b < kNumSinkBlocks || b >= view_.num_full_blocks - kNumGraceBlocks) return false;
    return lost_ + forecast_[block] <= static_cast<float>(view_.settings.max_lost_share) * total_;
  }

  void propose(std::size_t block) {
    const std::size_t rung = rung_of_[block];
    if (rung + 1 == rungs_.size()) return;
    const Rung &from = rungs_[rung], &to = rungs_[rung + 1];
    steps_.push_back(
        {forecast_[block] * (to.cost - from.cost) / static_cast<float>(from.bytes - to.bytes), block});
  }

  // Returns the bytes saved; 0 when the block must stay.
  std::int64_t take_step(std::size_t block) {
    std::size_t& rung = rung_of_[block];
    if (rungs_[rung + 1].format == KvFormat::kGone) {
      if (!may_drop(block)) return 0;
      lost_ += forecast_[block];
    }
    const std::int64_t saved = rungs_[rung].bytes - rungs_[rung + 1].bytes;
    ++rung;
    propose(block);
    if (rung + 1 < rungs_.size()) std::ranges::push_heap(steps_, is_later);
    return saved;
  }

  const PolicyView& view_;
  const std::vector<Rung> rungs_;
  std::vector<float> forecast_;       // by full block
  std::vector<std::size_t> rung_of_;  // likewise
  std::vector<std::size_t> order_;    // blocks by distinctness, the least first
  const bool may_drop_;               // formats alone leave no room for fine ones
  std::vector<Step> steps_;           // a heap: the next of each block
  float total_ = 0.0f, lost_ = 0.0f;  // attention in memory, and that of blocks that are gone
};

class LadderPolicy final : public KvPolicy {
 public:
  std::string_view name() const override { return "ladder"; }
  AttentionMemory memory() const override {
    return {.is_kept = true, .decay = kDecay, .statistic = CellStatistic::kDistinctness};
  }

  void plan(const PolicyView& view, std::vector<CellAction>& actions) const override {
    CellLadder ladder(view);
    for (std::int32_t cell = 0; cell < view.num_cells(); ++cell) ladder.plan(cell, actions);
  }
};

}  // namespace

const KvPolicy& ladder_policy() {
  static const LadderPolicy policy;
  return policy;
}

}  // namespace kvasir::kv
