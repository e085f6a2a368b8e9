#include "kv/policy/cell_ladder.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <ranges>

#include "base/portable_power.h"
#include "kv/policy/block_ranks.h"

namespace kvasir::kv {
namespace {

constexpr float kDecay = 0.995f;
constexpr float kLeastForecast = 1e-9f;
// Queries that have seen a block's tokens by the time it is full, on average.
constexpr std::int64_t kQueriesWhileFilling = 8;
// The floor of a block whose keys are the most unlike the others', in means of the forecast. It falls with
// the fourth power of the block's rank.
constexpr float kFloorMeans = 3.0f;
// The least forecast of any block, in means: a late question may be about a block that gets no attention now.
constexpr float kLeastMeans = 1.0f;

}  // namespace

AttentionMemory CellLadder::memory() {
  return {.is_kept = true, .decay = kDecay, .statistic = CellStatistic::kDistinctness};
}

CellLadder::CellLadder(const PolicyView& view)
    : view_(view),
      rungs_(ladder_of(view)),
      forecast_(static_cast<std::size_t>(view.num_full_blocks)),
      rung_of_(forecast_.size()),
      present_(forecast_.size()),
      seen_(forecast_.size()) {
  for (int i = 0; i < kNumKvFormats; ++i) {
    const auto format = static_cast<KvFormat>(i);
    bytes_of_[index_of(format)] = view.bytes(format);
  }
  // As PricedLadder: only where finer formats would not do for all.
  if (!formats_would_do(view, rungs_)) rungs_ = ladder_of(view, true);
  for (int i = 0; i < kNumKvFormats; ++i) {
    const auto format = static_cast<KvFormat>(i);
    std::size_t& rung = rung_of_format_[index_of(format)];
    while (is_coarser(format, rungs_[rung].format)) ++rung;
  }
  for (std::size_t b = 0; b < seen_.size(); ++b) {
    const auto queries = static_cast<std::int64_t>(seen_.size() - 1 - b) * kTokensPerBlock;
    seen_[b] = 1.0f - static_cast<float>(portable_power(kDecay, queries + kQueriesWhileFilling));
  }
}

std::int64_t CellLadder::read(std::int32_t cell, std::int64_t allowed_bytes) {
  cell_ = cell;
  may_drop_ = allowed_bytes < least_bytes_without_drops();
  steps_.clear();
  std::int64_t bytes = 0;
  for (std::int32_t b = view_.num_full_blocks; b < view_.num_blocks(); ++b) {
    bytes += bytes_of_[index_of(view_.format(b, cell))];
  }
  for (std::size_t b = 0; b < present_.size(); ++b) {
    present_[b] = view_.format(static_cast<std::int32_t>(b), cell);
    bytes += bytes_of_[index_of(present_[b])];
    rung_of_[b] = rung_of_format_[index_of(present_[b])];
  }
  return bytes - allowed_bytes;
}

void CellLadder::rank() {
  statistics_ = view_.scores->statistics(cell_);
  forecast();
  if (may_drop_) least_massive_ = least_massive_magnitude(statistics_);
  for (std::size_t b = 0; b < rung_of_.size(); ++b) propose(b);
  std::ranges::make_heap(steps_, is_later);
}

std::int64_t CellLadder::take_step() {
  std::ranges::pop_heap(steps_, is_later);
  const std::size_t block = steps_.back().block;
  steps_.pop_back();
  std::size_t& rung = rung_of_[block];
  const KvFormat to = rungs_[rung + 1].format;
  if (!may_become(to, block)) return 0;
  if (to == KvFormat::kGone) lost_ += forecast_[block];
  const std::int64_t saved = rungs_[rung].bytes - rungs_[rung + 1].bytes;
  ++rung;
  propose(block);
  if (rung + 1 < rungs_.size()) std::ranges::push_heap(steps_, is_later);
  return saved;
}

void CellLadder::pay(std::int64_t bytes) {
  while (bytes > 0 && has_step()) bytes -= take_step();
}

void CellLadder::finish(std::vector<CellAction>& actions) const {
  for (std::size_t b = 0; b < rung_of_.size(); ++b) {
    if (rung_of_[b] == 0) continue;
    const KvFormat to = rungs_[rung_of_[b]].format;
    if (!is_coarser(to, present_[b])) continue;
    actions.push_back({static_cast<std::int32_t>(b), cell_, to, ActionReason::kLeastLossPerByte,
                       later_attention(b)});
  }
}

// When two steps lose alike, the older block's comes first.
bool CellLadder::is_later(const Step& a, const Step& b) {
  return a.loss_per_byte != b.loss_per_byte ? a.loss_per_byte > b.loss_per_byte : a.block > b.block;
}

// Full blocks on the last rung before the drop or, where it does not suit them, on the one before; the others as they are.
std::int64_t CellLadder::least_bytes_without_drops() const {
  const Rung& last = rungs_[rungs_.size() - 2];
  const bool has_others = has_key_components(last.format);
  const std::int64_t num_others = has_others ? std::min(kNumSinkBlocks, view_.num_full_blocks) : 0;
  return (has_others ? num_others * rungs_[rungs_.size() - 3].bytes : 0) + (view_.num_full_blocks - num_others) * last.bytes +
         (view_.num_blocks() - view_.num_full_blocks) * view_.new_cell_bytes();
}

// Attention per query of the long run, for each full block.
void CellLadder::forecast() {
  const std::span<const float> scores = view_.scores->scores(cell_);
  total_ = lost_ = 0.0f;
  for (std::size_t b = 0; b < forecast_.size(); ++b) {
    const float score = b < scores.size() ? scores[b] : 0.0f;
    total_ += std::abs(score);
    if (score < 0.0f) lost_ += std::abs(score);
    forecast_[b] = std::max(score, 0.0f) / seen_[b];
  }
  raise_to_floor();
}

void CellLadder::raise_to_floor() {
  const std::span<const float> distinctness =
      statistics_.first(std::min(forecast_.size(), statistics_.size()));
  const float sum = std::accumulate(forecast_.begin(), forecast_.end(), 0.0f);
  mean_forecast_ =
      std::max(sum / static_cast<float>(std::max<std::size_t>(1, forecast_.size())), kLeastForecast);
  for (float& forecast : forecast_) forecast = std::max(forecast, kLeastMeans * mean_forecast_);
  ranks_.resize(distinctness.size());
  rank_by_distinctness(distinctness, ranks_);
  for (std::size_t b = 0; b < ranks_.size(); ++b) {
    const float share = ranks_[b];
    forecast_[b] = std::max(forecast_[b], kFloorMeans * mean_forecast_ * (share * share) * (share * share));
  }
}

void CellLadder::propose(std::size_t block) {
  const std::size_t rung = rung_of_[block];
  if (rung + 1 == rungs_.size()) return;
  const Rung &from = rungs_[rung], &to = rungs_[rung + 1];
  steps_.push_back({worth(block) * loss_per_byte(from, to), block});
}

// The geometric mean of the block's forecast and what any block gets. By the forecast alone SmolLM2 lost two
// of eleven needles of 4,096 tokens that were asked for late, at 25% of the bytes; this way it loses none,
// and text loses no more.
float CellLadder::worth(std::size_t block) const {
  return view_.weight_of(cell_) * std::sqrt(forecast_[block] * mean_forecast_);
}

bool CellLadder::may_become(KvFormat to, std::size_t block) const {
  const auto b = static_cast<std::int32_t>(block);
  if (to != KvFormat::kGone) return suits(to, b);
  if (b < kNumSinkBlocks || b >= view_.num_full_blocks - kNumGraceBlocks) return false;
  if (!may_drop_) return false;
  if (block < statistics_.size() && SequenceScores::value_magnitude(statistics_[block]) >= least_massive_) {
    return false;
  }
  const double may_lose = view_.settings.max_lost_share;
  return may_lose >= 1.0 || lost_ + forecast_[block] <= static_cast<float>(may_lose) * total_;
}

// The attention of each query, instead of the sum that memory keeps.
float CellLadder::later_attention(std::size_t block) const { return (1.0f - kDecay) * forecast_[block]; }

}  // namespace kvasir::kv
