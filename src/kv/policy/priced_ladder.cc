#include "kv/policy/priced_ladder.h"

#include <algorithm>
#include <cmath>

#include "kv/policy/block_ranks.h"
#include "kv/policy/learned_forecast.h"
#include "kv/policy/registry.h"

namespace kvasir::kv {
namespace {

// The cost of a drop that is asked for, in means of the attention that the head's blocks get, as if so much
// attention were lost besides.
constexpr float kMeansPerAsked = 100.0f;
// Each head keeps one part of so many of its bytes in f16.
constexpr std::int64_t kLeastPart = 40;

}  // namespace

PricedLadder::PricedLadder(const PolicyView& view)
    : view_(view),
      rungs_(ladder_of(view)),
      cost_of_drop_(view.costs[KvFormat::kGone]),
      allowed_bytes_(view.allowed_bytes()),
      blocks_(static_cast<std::size_t>(view.num_full_blocks) * static_cast<std::size_t>(view.num_cells())),
      heads_(static_cast<std::size_t>(view.num_cells())) {
  const auto is_drop = [](const Rung& rung) { return rung.format == KvFormat::kGone; };
  std::erase_if(rungs_, is_drop);
  may_drop_ = !formats_would_do(view, rungs_);
  if (may_drop_) {
    rungs_ = ladder_of(view, true);
    std::erase_if(rungs_, is_drop);
  }
  least_bytes_ = std::min(view.num_blocks() * view.bytes(KvFormat::kF16) / kLeastPart, allowed_bytes_ / 2);
  for (std::int32_t cell = 0; cell < view.num_cells(); ++cell) {
    measure_head(cell);
    excess_bytes_ += head(cell).bytes - allowed_bytes_;
  }
}

void PricedLadder::measure_head(std::int32_t cell) {
  Head& of_cell = head(cell);
  of_cell.bytes = view_.present_bytes(cell);
  for (std::int32_t b = 0; b < view_.num_full_blocks; ++b) {
    Block& block = blocks_[index(b, cell)];
    block.rung = rung_of(view_.format(b, cell));
  }
}

// The first that is not finer.
std::uint8_t PricedLadder::rung_of(KvFormat format) const {
  if (format == KvFormat::kGone) return kDropped;
  std::uint8_t rung = 0;
  while (rung + 1u < rungs_.size() && is_coarser(format, rungs_[rung].format)) ++rung;
  return rung;
}

void PricedLadder::add_cell(const BlockForecast& forecast) {
  const std::int32_t cell = num_cells_++;
  const auto num_blocks = static_cast<std::size_t>(view_.num_full_blocks);
  const bool is_sound = forecast.attention.size() == num_blocks && forecast.asked.size() == num_blocks &&
                        forecast.is_sound();
  Head& of_cell = head(cell);
  of_cell.asked_buys_bits = is_sound && forecast.asked_buys_bits;
  for (const float score : view_.scores->scores(cell)) {
    of_cell.remembered += std::abs(score);
    if (score < 0.0f) of_cell.lost -= score;
  }
  const float mean = of_cell.remembered / static_cast<float>(std::max<std::size_t>(1, num_blocks));
  const float alike = mean <= BlockForecast::kGreatest ? mean : 1.0f;  // nor NaN
  const auto attention_to = [&](std::size_t b) { return is_sound ? forecast.attention[b] : alike; };
  float sum = 0.0f;
  for (std::size_t b = 0; b < num_blocks; ++b) sum += attention_to(b);
  const float per_asked = kMeansPerAsked * sum / static_cast<float>(std::max<std::size_t>(1, num_blocks));
  for (std::size_t b = 0; b < num_blocks; ++b) {
    Block& block = blocks_[index(static_cast<std::int32_t>(b), cell)];
    block.attention = attention_to(b);
    block.asked_cost = is_sound ? per_asked * forecast.asked[b] : 0.0f;
  }
  pin(cell);
}

void PricedLadder::pin(std::int32_t cell) {
  const std::span<const float> statistics = view_.scores->statistics(cell);
  const std::size_t least_massive = least_massive_magnitude(statistics);
  for (std::int32_t b = 0; b < view_.num_full_blocks; ++b) {
    const auto place = static_cast<std::size_t>(b);
    const bool is_massive = place < statistics.size() &&
                            SequenceScores::value_magnitude(statistics[place]) >= least_massive;
    blocks_[index(b, cell)].is_pinned = b < kNumSinkBlocks || b >= view_.num_full_blocks - kNumGraceBlocks ||
                                        is_massive;
  }
}

void PricedLadder::plan(std::vector<CellAction>& actions) {
  for (std::int32_t cell = 0; cell < view_.num_cells(); ++cell) {
    for (std::int32_t b = 0; b < view_.num_full_blocks; ++b) propose(b, cell, true);
  }
  std::ranges::make_heap(steps_, is_later);
  while (excess_bytes_ > 0 && !steps_.empty()) {
    std::ranges::pop_heap(steps_, is_later);
    const Step step = steps_.back();
    steps_.pop_back();
    if (step.is_drop && !may_ever_drop(step.block, step.cell)) {
      propose_next(step.block, step.cell, false);
    } else {
      take(step);
    }
  }
  for (std::int32_t cell = 0; cell < view_.num_cells(); ++cell) {
    for (std::int32_t b = 0; b < view_.num_full_blocks; ++b) {
      const Block& block = blocks_[index(b, cell)];
      const bool is_drop = block.rung == kDropped;
      const KvFormat to = is_drop ? KvFormat::kGone : rungs_[block.rung].format;
      if ((!is_drop && block.rung == 0) || !is_coarser(to, view_.format(b, cell))) continue;
      actions.push_back({b, cell, to, is_drop ? ActionReason::kSeldomAsked : ActionReason::kLeastPrice,
                         DecayedMass::of_one_query(block.attention)});
    }
  }
}

void PricedLadder::take(const Step& step) {
  Block& block = blocks_[index(step.block, step.cell)];
  Head& of_cell = head(step.cell);
  const std::int64_t before = rungs_[block.rung].bytes;
  std::int64_t saved = before;
  if (step.is_drop) {
    block.rung = kDropped;
    of_cell.lost += block.attention;
  } else {
    saved -= rungs_[++block.rung].bytes;
    propose_next(step.block, step.cell, true);
  }
  of_cell.bytes -= saved;
  excess_bytes_ -= saved;
}

// Proposes the cheaper of the block's next steps, a coarser format and a drop: so its steps follow the lower
// convex hull of its own costs over bytes. Returns whether there is one. It joins no heap yet.
bool PricedLadder::propose(std::int32_t b, std::int32_t cell, bool with_drop) {
  const Block& block = blocks_[index(b, cell)];
  if (block.rung == kDropped) return false;
  const bool has_format = block.rung + 1u < rungs_.size() && suits(rungs_[block.rung + 1u].format, b);
  const bool has_drop = with_drop && may_ever_drop(b, cell);
  if (!has_format && !has_drop) return false;
  const float of_format = has_format ? format_price(block, cell) : 0.0f;
  const float of_drop = has_drop ? drop_price(block, cell) : 0.0f;
  const bool is_drop = has_drop && (!has_format || of_drop < of_format);
  steps_.push_back({is_drop ? of_drop : of_format, b, cell, is_drop});
  return true;
}

void PricedLadder::propose_next(std::int32_t b, std::int32_t cell, bool with_drop) {
  if (propose(b, cell, with_drop)) std::ranges::push_heap(steps_, is_later);
}

float PricedLadder::format_price(const Block& block, std::int32_t cell) const {
  const float of_asked = heads_[static_cast<std::size_t>(cell)].asked_buys_bits ? block.asked_cost : 0.0f;
  return view_.weight_of(cell) * (block.attention + of_asked) * loss_per_byte(rungs_[block.rung], rungs_[block.rung + 1u]);
}

float PricedLadder::drop_price(const Block& block, std::int32_t cell) const {
  const Rung& from = rungs_[block.rung];
  const float loss = block.attention * (cost_of_drop_ - from.cost) + block.asked_cost * cost_of_drop_;
  return view_.weight_of(cell) * loss / static_cast<float>(from.bytes);
}

PricedLadder::BlockCost PricedLadder::cost_of(std::int32_t b, std::int32_t cell) const {
  const Block& block = blocks_[index(b, cell)];
  const bool is_dropped = block.rung == kDropped;
  const double weight = view_.weight_of(cell);
  return {.attention = weight * double{block.attention},
          .extra = weight * double{block.asked_cost} * double{cost_of_drop_},
          .loss = is_dropped ? cost_of_drop_ : rungs_[block.rung].cost,
          .is_dropped = is_dropped};
}

// Whether the guards that last for a whole plan allow it.
bool PricedLadder::may_ever_drop(std::int32_t b, std::int32_t cell) {
  const Block& block = blocks_[index(b, cell)];
  if (!may_drop_ || block.is_pinned) return false;
  const Head& of_cell = head(cell);
  if (of_cell.bytes - rungs_[block.rung].bytes < least_bytes_) return false;
  const double may_lose = view_.settings.max_lost_share;
  return may_lose >= 1.0 ||
         of_cell.lost + block.attention <= static_cast<float>(may_lose) * of_cell.remembered;
}

// When two steps cost alike, the older block's comes first.
bool PricedLadder::is_later(const Step& a, const Step& b) {
  if (a.price != b.price) return a.price > b.price;
  return a.block != b.block ? a.block > b.block : a.cell > b.cell;
}

namespace {

template <class Forecaster>
void plan_by(const PolicyView& view, PricedLadder& ladder, std::vector<CellAction>& actions) {
  Forecaster forecaster(view);
  BlockForecast forecast;
  for (std::int32_t cell = 0; cell < view.num_cells(); ++cell) {
    forecaster.forecast(cell, forecast);
    ladder.add_cell(forecast);
  }
  ladder.plan(actions);
}

class PricedLadderPolicy : public KvPolicy {
 public:
  std::string_view name() const override { return "ladder-priced"; }
  AttentionMemory memory() const override { return DecayedMass::memory(); }

  void plan(const PolicyView& view, std::vector<CellAction>& actions) const override {
    PricedLadder ladder(view);
    if (ladder.excess_bytes() > 0) plan_by<DecayedMass>(view, ladder, actions);
  }
};

// The same with a forecast that was learned of the model, where there is one.
class LearnedLadderPolicy final : public PricedLadderPolicy {
 public:
  std::string_view name() const override { return "ladder-learned"; }

  void plan(const PolicyView& view, std::vector<CellAction>& actions) const override {
    if (view.network == nullptr) return PricedLadderPolicy::plan(view, actions);
    PricedLadder ladder(view);
    if (ladder.excess_bytes() > 0) plan_by<LearnedForecast>(view, ladder, actions);
  }
};

}  // namespace

const KvPolicy& priced_ladder_policy() {
  static const PricedLadderPolicy policy;
  return policy;
}

const KvPolicy& learned_ladder_policy() {
  static const LearnedLadderPolicy policy;
  return policy;
}

}  // namespace kvasir::kv
