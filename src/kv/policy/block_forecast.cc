#include "kv/policy/block_forecast.h"

#include <algorithm>

#include "kv/policy/block_ranks.h"

namespace kvasir::kv {
namespace {

constexpr float kDecayPerQuery = 0.995f;
// The chance of a block whose keys are the most unlike the others'. It falls with the fourth power of the
// block's rank.
constexpr float kGreatestAsked = 0.03f;

constexpr float power_of_decay(std::int32_t exponent) {
  float power = 1.0f;
  for (std::int32_t i = 0; i < exponent; ++i) power *= kDecayPerQuery;
  return power;
}

}  // namespace

bool BlockForecast::is_sound() const {
  const auto is_amount = [](float value) { return value >= 0.0f && value <= kGreatest; };  // nor NaN
  return std::ranges::all_of(attention, is_amount) && std::ranges::all_of(asked, is_amount);
}

AttentionMemory DecayedMass::memory() {
  return {.is_kept = true, .decay = kDecayPerQuery, .statistic = CellStatistic::kDistinctness};
}

DecayedMass::DecayedMass(const PolicyView& view)
    : view_(view), seen_(static_cast<std::size_t>(view.num_full_blocks)) {
  constexpr float kOfBlock = power_of_decay(kTokensPerBlock);
  float unseen = power_of_decay(kTokensPerBlock / 2);  // the newest block saw about half of its own queries
  for (std::size_t b = seen_.size(); b-- > 0;) {
    seen_[b] = 1.0f - unseen;
    unseen *= kOfBlock;
  }
}

float DecayedMass::of_one_query(float attention) { return (1.0f - kDecayPerQuery) * attention; }

void DecayedMass::forecast(std::int32_t cell, BlockForecast& forecast) {
  const std::span<const float> scores = view_.scores->scores(cell);
  forecast.attention.assign(seen_.size(), 0.0f);
  for (std::size_t b = 0; b < std::min(seen_.size(), scores.size()); ++b) {
    forecast.attention[b] = scores[b] < 0.0f ? 0.0f : scores[b] / seen_[b];
  }
  forecast.asked.assign(seen_.size(), 0.0f);
  forecast_asked(cell, forecast.asked);
}

void DecayedMass::forecast_asked(std::int32_t cell, std::span<float> asked) {
  const std::span<const float> statistics = view_.scores->statistics(cell);
  const std::size_t num_measured = std::min(asked.size(), statistics.size());
  rank_by_distinctness(statistics.first(num_measured), asked);
  for (float& share : asked) share = kGreatestAsked * (share * share) * (share * share);
}

}  // namespace kvasir::kv
