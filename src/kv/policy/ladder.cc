// Formats before drops, by what a later query is expected to pay attention to.
//
// In each layer and head alone, the step down that loses the least per byte comes first: loss = forecast
// attention x what the coarser format loses of it. Nothing is dropped as long as the coarsest format would
// do: what a drop loses is bimodal, nothing or the one thing that is asked for, and no forecast knows which.
// The forecast is attention with a memory of about 200 queries, never less than what the block's keys promise
// by being unlike the others (KeyDiff), and never below the mean: text that nobody has asked about yet looks
// like nothing in attention, which only tells the blocks that deserve more than their share.
#include <algorithm>
#include <array>
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
// The floor of a block whose keys are the most unlike the others', in means of the forecast. It falls with
// the fourth power of the block's rank.
constexpr float kFloorMeans = 3.0f;
// Of any block, in means: what nobody looks at now is what a late question may be about.
constexpr float kLeastMeans = 1.0f;

// One layer and head of a sequence.
class CellLadder {
 public:
  explicit CellLadder(const PolicyView& view)
      : view_(view),
        rungs_(ladder_of(view)),
        forecast_(static_cast<std::size_t>(view.num_full_blocks)),
        rung_of_(forecast_.size()),
        present_(forecast_.size()),
        seen_(forecast_.size()),
        may_drop_(view.allowed_bytes() < least_bytes_of_formats()) {
    for (int i = 0; i < kNumKvFormats; ++i) {
      const auto format = static_cast<KvFormat>(i);
      bytes_of_[index_of(format)] = view.bytes(format);
      std::size_t& rung = rung_of_format_[index_of(format)];
      while (is_coarser(format, rungs_[rung].format)) ++rung;
    }
    for (std::size_t b = 0; b < seen_.size(); ++b) {
      const auto queries = static_cast<float>((seen_.size() - 1 - b) * kTokensPerBlock);
      seen_[b] = 1.0f - std::pow(kDecay, queries + kQueriesWhileFilling);
    }
  }

  void plan(std::int32_t cell, std::vector<CellAction>& actions) {
    std::int64_t bytes = read_formats(cell) - view_.allowed_bytes();
    if (bytes <= 0) return;
    forecast(cell);
    statistics_ = view_.scores->statistics(cell);
    if (may_drop_) find_massive_values();
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
      if (!is_coarser(to, present_[b])) continue;
      actions.push_back({block, cell, to, ActionReason::kLeastLossPerByte, (1.0f - kDecay) * forecast_[b]});
    }
  }

 private:
  // All full blocks in the coarsest format that is not a drop.
  std::int64_t least_bytes_of_formats() const {
    const std::int64_t coarsest = rungs_.size() > 1 ? rungs_[rungs_.size() - 2].bytes : 0;
    return view_.num_full_blocks * coarsest +
           (view_.num_blocks() - view_.num_full_blocks) * view_.bytes(KvFormat::kF16);
  }

  static constexpr std::size_t kNumBins = 256;
  static std::size_t index_of(KvFormat format) { return static_cast<std::size_t>(format); }

  struct Step {
    float loss_per_byte;
    std::size_t block;
  };
  // Of two steps that lose alike the older block's comes first.
  static bool is_later(const Step& a, const Step& b) {
    return a.loss_per_byte != b.loss_per_byte ? a.loss_per_byte > b.loss_per_byte : a.block > b.block;
  }

  // Returns the bytes that the cell's blocks take.
  std::int64_t read_formats(std::int32_t cell) {
    std::int64_t bytes = 0;
    for (std::int32_t b = view_.num_full_blocks; b < view_.num_blocks(); ++b) {
      bytes += bytes_of_[index_of(view_.format(b, cell))];
    }
    for (std::size_t b = 0; b < present_.size(); ++b) {
      present_[b] = view_.format(static_cast<std::int32_t>(b), cell);
      bytes += bytes_of_[index_of(present_[b])];
      rung_of_[b] = rung_of_format_[index_of(present_[b])];
    }
    return bytes;
  }

  // Attention per query of the long run, for each full block.
  void forecast(std::int32_t cell) {
    const std::span<const float> masses = view_.scores->masses(cell);
    total_ = lost_ = 0.0f;
    for (std::size_t b = 0; b < forecast_.size(); ++b) {
      const float mass = b < masses.size() ? masses[b] : 0.0f;
      total_ += std::abs(mass);
      if (mass < 0.0f) lost_ -= mass;
      forecast_[b] = std::max(mass, 0.0f) / seen_[b];
    }
    raise_to_floor(cell);
  }

  // Ranks are those of 256 bins: sorting would take longer than all the rest.
  void raise_to_floor(std::int32_t cell) {
    const std::span<const float> distinctness = view_.scores->statistics(cell).first(
        std::min(forecast_.size(), view_.scores->statistics(cell).size()));
    const float mean = std::accumulate(forecast_.begin(), forecast_.end(), 0.0f) /
                       static_cast<float>(std::max<std::size_t>(1, forecast_.size()));
    for (float& forecast : forecast_) forecast = std::max({forecast, kLeastMeans * mean, kLeastForecast});
    if (distinctness.empty()) return;
    const auto [least, greatest] = std::ranges::minmax(distinctness);
    const float bins_per_unit = greatest > least ? (kNumBins - 1) / (greatest - least) : 0.0f;
    const auto bin_of = [&](std::size_t b) {
      return static_cast<std::size_t>((distinctness[b] - least) * bins_per_unit);
    };
    std::array<float, kNumBins> num_less_distinct = {};
    for (std::size_t b = 0; b < distinctness.size(); ++b) num_less_distinct[bin_of(b)] += 1.0f;
    std::exclusive_scan(num_less_distinct.begin(), num_less_distinct.end(), num_less_distinct.begin(), 0.0f);
    for (std::size_t b = 0; b < distinctness.size(); ++b) {
      const float share = num_less_distinct[bin_of(b)] / static_cast<float>(distinctness.size());
      forecast_[b] = std::max(forecast_[b], kFloorMeans * mean * (share * share) * (share * share));
    }
  }

  // Tokens with massive values hold a sentence together although little attention goes to them: without them
  // models repeat themselves (VaSE). Those of the longest 1% stay.
  void find_massive_values() {
    std::array<std::size_t, 256> num_blocks_of = {};
    for (const float statistic : statistics_) ++num_blocks_of[SequenceScores::value_magnitude(statistic)];
    std::size_t may_stay = std::max<std::size_t>(1, statistics_.size() / 100);
    least_massive_ = 256;
    while (least_massive_ > 1 && num_blocks_of[least_massive_ - 1] <= may_stay) {
      may_stay -= num_blocks_of[--least_massive_];
    }
  }

  bool may_drop(std::size_t block) const {
    if (!may_drop_) return false;
    if (block < statistics_.size() && SequenceScores::value_magnitude(statistics_[block]) >= least_massive_) {
      return false;
    }
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
  std::vector<KvFormat> present_;     // likewise
  // Of a long memory, what has been filled since the block was: what few queries have seen counts as if the
  // others were like them.
  std::vector<float> seen_;
  std::array<std::int64_t, kNumKvFormats> bytes_of_ = {};
  std::array<std::size_t, kNumKvFormats> rung_of_format_ = {};  // the first that is not finer
  const bool may_drop_;                                         // formats alone leave no room for fine ones
  std::vector<Step> steps_;                                     // a heap: the next of each block
  std::span<const float> statistics_;                           // of the cell, by full block
  std::size_t least_massive_ = 0;                               // value_magnitude of what stays for it
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
