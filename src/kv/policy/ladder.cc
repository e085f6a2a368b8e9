// Formats before drops, by what a later query is expected to pay attention to.
//
// In each layer and head alone, the step down that loses the least per byte comes first: loss = forecast
// attention x what the coarser format loses of it. Nothing is dropped as long as the coarsest format would
// do: what a drop loses is bimodal, nothing or the one thing that is asked for, and no forecast knows which.
// The forecast is attention with a memory of about 200 queries, never less than what the block's keys promise
// by being unlike the others (KeyDiff), and never below the mean: text that nobody has asked about yet looks
// like nothing in attention, which only tells the blocks that deserve more than their share.
//
// With a disk a block becomes a ghost before it is dropped: it is read no more, but told how much attention
// it would get. Where that makes what it was worth its bytes twice over at the present price, it comes back
// and others pay for it. What has moved one way rests before it goes the other (RecentMoves).
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <ranges>

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
// What coming back must be worth, in prices of the cheapest step down.
constexpr float kPromotionPrices = 2.0f;

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
        ghost_(std::ranges::find(rungs_, KvFormat::kGhost, &Rung::format)),
        may_ghost_(view.allowed_bytes() < bytes_of_all_in(coarsest_before(KvFormat::kGhost))),
        may_drop_(view.allowed_bytes() < bytes_of_all_in(coarsest_before(KvFormat::kGone))) {
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
    if (bytes <= 0 && !has_ghosts_) return;
    forecast(cell);
    statistics_ = view_.scores->statistics(cell);
    if (may_ghost_) find_massive_values();
    find_resting(cell);
    steps_.clear();
    for (std::size_t b = 0; b < rung_of_.size(); ++b) propose(b);
    std::ranges::make_heap(steps_, is_later);
    bytes = pay(bytes);
    if (has_ghosts_) promote(cell, bytes, actions);
    for (std::size_t b = 0; b < rung_of_.size(); ++b) {
      if (rung_of_[b] == 0) continue;
      const auto block = static_cast<std::int32_t>(b);
      const KvFormat to = rungs_[rung_of_[b]].format;
      if (!is_coarser(to, present_[b])) continue;
      actions.push_back({block, cell, to, ActionReason::kLeastLossPerByte, (1.0f - kDecay) * forecast_[b],
                         to == KvFormat::kGhost ? kept_as(b) : KvFormat::kGone});
    }
  }

 private:
  // The coarsest rung that is finer than the format.
  const Rung& coarsest_before(KvFormat format) const {
    const auto is_finer = [&](const Rung& rung) { return is_coarser(format, rung.format); };
    return *std::ranges::find_if(rungs_ | std::views::reverse, is_finer);
  }
  // Full blocks in the rung's format, the others as they are.
  std::int64_t bytes_of_all_in(const Rung& rung) const {
    return view_.num_full_blocks * rung.bytes +
           (view_.num_blocks() - view_.num_full_blocks) * view_.bytes(KvFormat::kF16);
  }
  // Of the copy that a ghost leaves: what it was, but no finer than it would come back as.
  KvFormat kept_as(std::size_t block) const {
    const KvFormat coarsest = coarsest_before(KvFormat::kGhost).format;
    return is_coarser(coarsest, present_[block]) ? coarsest : present_[block];
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
    has_ghosts_ = false;
    for (std::int32_t b = view_.num_full_blocks; b < view_.num_blocks(); ++b) {
      bytes += bytes_of_[index_of(view_.format(b, cell))];
    }
    for (std::size_t b = 0; b < present_.size(); ++b) {
      present_[b] = view_.format(static_cast<std::int32_t>(b), cell);
      bytes += bytes_of_[index_of(present_[b])];
      rung_of_[b] = rung_of_format_[index_of(present_[b])];
      has_ghosts_ = has_ghosts_ || present_[b] == KvFormat::kGhost;
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
      if (mass < 0.0f || present_[b] == KvFormat::kGhost) lost_ += std::abs(mass);
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

  bool may_become(KvFormat to, std::size_t block) const {
    if (to != KvFormat::kGhost && to != KvFormat::kGone) return true;
    const auto b = static_cast<std::int32_t>(block);
    if (b < kNumSinkBlocks || b >= view_.num_full_blocks - kNumGraceBlocks) return false;
    if (is_resting_[block]) return false;
    if (to == KvFormat::kGhost && !may_ghost_) return false;
    if (to == KvFormat::kGone && !may_drop_) return false;
    if (block < statistics_.size() && SequenceScores::value_magnitude(statistics_[block]) >= least_massive_) {
      return false;
    }
    return lost_ + newly_lost(block) <= static_cast<float>(view_.settings.max_lost_share) * total_;
  }
  // Attention that goes to nobody from now on: that of a ghost does already.
  float newly_lost(std::size_t block) const {
    return rungs_[rung_of_[block]].format == KvFormat::kGhost ? 0.0f : forecast_[block];
  }

  void propose(std::size_t block) {
    const std::size_t rung = rung_of_[block];
    if (rung + 1 == rungs_.size()) return;
    const Rung &from = rungs_[rung], &to = rungs_[rung + 1];
    steps_.push_back(
        {forecast_[block] * (to.cost - from.cost) / static_cast<float>(from.bytes - to.bytes), block});
  }

  // Takes the cheapest steps until so many bytes are saved, and returns what could not be.
  std::int64_t pay(std::int64_t bytes) {
    while (bytes > 0 && !steps_.empty()) {
      std::ranges::pop_heap(steps_, is_later);
      const std::size_t block = steps_.back().block;
      steps_.pop_back();
      bytes -= take_step(block);
    }
    return bytes;
  }

  void find_resting(std::int32_t cell) {
    is_resting_.assign(rung_of_.size(), false);
    if (view_.moves == nullptr) return;
    for (const RecentMoves::Move& move : view_.moves->moves()) {
      if (move.group == view_.group && move.cell == cell)
        is_resting_[static_cast<std::size_t>(move.block)] = true;
    }
  }

  // The ghosts that are worth the most per byte come back first, as long as those that pay are worth less.
  // `bytes` are above the budget, or below it.
  void promote(std::int32_t cell, std::int64_t bytes, std::vector<CellAction>& actions) {
    promotions_.clear();
    for (std::size_t b = 0; b < present_.size(); ++b) {
      if (present_[b] != KvFormat::kGhost || is_resting_[b]) continue;
      const KvFormat to = view_.promotion(static_cast<std::int32_t>(b), cell);
      if (to == KvFormat::kGone) continue;
      const float gain = forecast_[b] * (ghost_->cost - view_.costs[to]);
      promotions_.push_back({gain / static_cast<float>(bytes_of_[index_of(to)] - ghost_->bytes), b});
    }
    std::ranges::sort(promotions_, std::ranges::greater(), &Step::loss_per_byte);
    for (const auto& [gain_per_byte, block] : promotions_) {
      if (steps_.empty() || gain_per_byte < kPromotionPrices * steps_.front().loss_per_byte) return;
      const auto b = static_cast<std::int32_t>(block);
      const KvFormat to = view_.promotion(b, cell);
      is_resting_[block] = true;
      bytes = pay(bytes + bytes_of_[index_of(to)] - ghost_->bytes);
      if (bytes > 0) return;
      actions.push_back({b, cell, to, ActionReason::kPromoted, (1.0f - kDecay) * forecast_[block]});
    }
  }

  // Returns the bytes saved; 0 when the block must stay.
  std::int64_t take_step(std::size_t block) {
    std::size_t& rung = rung_of_[block];
    const KvFormat to = rungs_[rung + 1].format;
    if (!may_become(to, block)) return 0;
    if (to == KvFormat::kGhost || to == KvFormat::kGone) lost_ += newly_lost(block);
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
  const std::vector<Rung>::const_iterator ghost_;               // the end where there are none
  const bool may_ghost_;                                        // formats alone leave no room for fine ones
  const bool may_drop_;                                         // nor do ghosts
  bool has_ghosts_ = false;
  std::vector<bool> is_resting_;       // by full block
  std::vector<Step> promotions_;       // what each block would gain
  std::vector<Step> steps_;            // a heap: the next of each block
  std::span<const float> statistics_;  // of the cell, by full block
  std::size_t least_massive_ = 0;      // value_magnitude of what stays for it
  float total_ = 0.0f, lost_ = 0.0f;   // attention in memory, and that of blocks that are gone
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
