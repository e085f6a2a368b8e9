#include "kv/policy/learned_forecast.h"

#include <algorithm>
#include <span>

#include "base/portable_exp.h"

namespace kvasir::kv {
namespace {

// The share that counts of the chance that DecayedMass gives: what is learned of attention finds many blocks that are asked for.
constexpr float kShareOfAsked = 0.3f;

}  // namespace

LearnedForecast::LearnedForecast(const PolicyView& view) : view_(view), mass_(view), inputs_(view, mass_) {}

void LearnedForecast::forecast(std::int32_t cell, BlockForecast& forecast) {
  mass_.forecast(cell, forecast);
  for (float& chance : forecast.asked) chance *= kShareOfAsked;
  if (!inputs_.read(cell)) return;  // as it is without a network
  const std::span<const float> scores = view_.scores->scores(cell);
  for (std::size_t b = 0; b < std::min(scores.size(), inputs_.blocks().size()); ++b) {
    const float log_of_attention = view_.network->log_of_attention(static_cast<std::size_t>(cell), inputs_.blocks()[b]);
    if (scores[b] >= 0.0f) forecast.attention[b] = inputs_.mean() * static_cast<float>(portable_exp(log_of_attention));
  }
}

}  // namespace kvasir::kv
