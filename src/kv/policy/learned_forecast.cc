#include "kv/policy/learned_forecast.h"

#include <algorithm>
#include <cmath>

#include "base/portable_exp.h"
#include "base/portable_log.h"
#include "kv/policy/block_ranks.h"

namespace kvasir::kv {
namespace {

enum Input : std::size_t { kAttention, kAge, kDistinctnessRank, kLongestValue, kMeanAttention, kFilled, kPlace };

constexpr float kLeastShareOfMean = 1e-4f;
constexpr float kLeastMean = 1e-9f;
constexpr float kMagnitudesPerDoubling = 8.0f;
// The share that counts of the chance that DecayedMass gives: what is learned of attention finds many blocks that are asked for.
constexpr float kShareOfAsked = 0.3f;

float log_of(float value) { return static_cast<float>(portable_log(value)); }

}  // namespace

LearnedForecast::LearnedForecast(const PolicyView& view)
    : view_(view), mass_(view), of_places_(static_cast<std::size_t>(view.num_full_blocks)), ranks_(of_places_.size()) {
  const auto num_blocks = static_cast<float>(of_places_.size());
  for (std::size_t b = 0; b < of_places_.size(); ++b) {
    Inputs& inputs = of_places_[b];
    inputs[kAge] = log_of(num_blocks - static_cast<float>(b));
    inputs[kFilled] = log_of(mass_.filled_since(b));
    inputs[kPlace] = static_cast<float>(b) / num_blocks;
  }
}

void LearnedForecast::forecast(std::int32_t cell, BlockForecast& forecast) {
  mass_.forecast(cell, forecast);
  for (float& chance : forecast.asked) chance *= kShareOfAsked;
  const std::span<const float> scores = view_.scores->scores(cell);
  const std::span<const float> statistics = view_.scores->statistics(cell);
  const std::size_t num_blocks = of_places_.size();
  const auto score = [&](std::size_t b) { return b < scores.size() ? std::abs(scores[b]) : 0.0f; };
  const auto magnitude = [&](std::size_t b) {
    return b < statistics.size() ? static_cast<float>(SequenceScores::value_magnitude(statistics[b])) / kMagnitudesPerDoubling : 0.0f;
  };
  float mean = 0.0f, mean_magnitude = 0.0f;
  for (std::size_t b = 0; b < num_blocks; ++b) {
    mean += score(b);
    mean_magnitude += magnitude(b);
  }
  mean = mean / static_cast<float>(num_blocks) + kLeastMean;
  mean_magnitude /= static_cast<float>(num_blocks);
  if (!(mean < BlockForecast::kGreatest)) return;  // nor NaN: as it is without a network
  std::ranges::fill(ranks_, 0.0f);
  const std::size_t num_measured = std::min(num_blocks, statistics.size());
  rank_by_distinctness(statistics.first(num_measured), ranks_);
  const float log_of_mean = log_of(mean);
  for (std::size_t b = 0; b < num_blocks; ++b) {
    Inputs inputs = of_places_[b];
    inputs[kAttention] = log_of((score(b) + kLeastShareOfMean * mean) / mean);
    inputs[kDistinctnessRank] = ranks_[b];
    inputs[kLongestValue] = magnitude(b) - mean_magnitude;
    inputs[kMeanAttention] = log_of_mean;
    const float log_of_attention = view_.network->log_of_attention(static_cast<std::size_t>(cell), inputs);
    if (b < scores.size() && scores[b] >= 0.0f) forecast.attention[b] = mean * static_cast<float>(portable_exp(log_of_attention));
  }
}

}  // namespace kvasir::kv
