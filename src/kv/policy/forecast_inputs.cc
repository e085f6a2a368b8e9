#include "kv/policy/forecast_inputs.h"

#include <algorithm>
#include <cmath>

#include "base/portable_log.h"
#include "kv/policy/block_ranks.h"

namespace kvasir::kv {
namespace {

enum Input : std::size_t { kAttention, kAge, kDistinctnessRank, kLongestValue, kMeanAttention, kFilled, kPlace };

constexpr float kLeastShareOfMean = 1e-4f;
constexpr float kLeastMean = 1e-9f;
constexpr float kMagnitudesPerDoubling = 8.0f;

float log_of(float value) { return static_cast<float>(portable_log(value)); }

}  // namespace

ForecastInputs::ForecastInputs(const PolicyView& view, const DecayedMass& mass)
    : view_(view), blocks_(static_cast<std::size_t>(view.num_full_blocks)), ranks_(blocks_.size()) {
  const auto num_blocks = static_cast<float>(blocks_.size());
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    Inputs& inputs = blocks_[b];
    inputs[kAge] = log_of(num_blocks - static_cast<float>(b));
    inputs[kFilled] = log_of(mass.filled_since(b));
    inputs[kPlace] = static_cast<float>(b) / num_blocks;
  }
}

bool ForecastInputs::read(std::int32_t cell) {
  const std::span<const float> scores = view_.scores->scores(cell);
  const std::span<const float> statistics = view_.scores->statistics(cell);
  const std::size_t num_blocks = blocks_.size();
  const auto score = [&](std::size_t b) { return b < scores.size() ? std::abs(scores[b]) : 0.0f; };
  const auto magnitude = [&](std::size_t b) {
    return b < statistics.size() ? static_cast<float>(SequenceScores::value_magnitude(statistics[b])) / kMagnitudesPerDoubling : 0.0f;
  };
  mean_ = 0.0f;
  float mean_magnitude = 0.0f;
  for (std::size_t b = 0; b < num_blocks; ++b) {
    mean_ += score(b);
    mean_magnitude += magnitude(b);
  }
  mean_ = mean_ / static_cast<float>(num_blocks) + kLeastMean;
  mean_magnitude /= static_cast<float>(num_blocks);
  if (!(mean_ < BlockForecast::kGreatest)) return false;  // nor NaN
  std::ranges::fill(ranks_, 0.0f);
  const std::size_t num_measured = std::min(num_blocks, statistics.size());
  rank_by_distinctness(statistics.first(num_measured), ranks_);
  const float log_of_mean = log_of(mean_);
  for (std::size_t b = 0; b < num_blocks; ++b) {
    Inputs& inputs = blocks_[b];
    inputs[kAttention] = log_of((score(b) + kLeastShareOfMean * mean_) / mean_);
    inputs[kDistinctnessRank] = ranks_[b];
    inputs[kLongestValue] = magnitude(b) - mean_magnitude;
    inputs[kMeanAttention] = log_of_mean;
  }
  return true;
}

}  // namespace kvasir::kv
