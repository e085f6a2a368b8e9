#include "kv/policy/learned_forecast.h"

#include <algorithm>
#include <span>

#include "base/portable_exp.h"

namespace kvasir::kv {
namespace {

// The share that counts of the chance: what is learned of attention finds many blocks that are asked for.
constexpr float kShareOfAsked = 0.3f;

}  // namespace

LearnedForecast::LearnedForecast(const PolicyView& view) : view_(view), mass_(view), inputs_(view, mass_) {}

void LearnedForecast::forecast(std::int32_t cell, BlockForecast& forecast) {
  mass_.forecast(cell, forecast);
  forecast.asked_buys_bits = false;
  for (float& chance : forecast.asked) chance *= kShareOfAsked;
  const bool knows_asked = !view_.network->asked_biases.empty();
  if (!inputs_.read(cell)) return;  // as it is without a network
  forecast.asked_buys_bits = knows_asked;
  const std::span<const float> scores = view_.scores->scores(cell);
  for (std::size_t b = 0; b < std::min(scores.size(), inputs_.blocks().size()); ++b) {
    if (scores[b] < 0.0f) continue;  // it is gone
    const auto [log_of_attention, log_odds_of_asked] = view_.network->outputs(static_cast<std::size_t>(cell), inputs_.blocks()[b]);
    forecast.attention[b] = inputs_.mean() * static_cast<float>(portable_exp(log_of_attention));
    if (knows_asked) forecast.asked[b] = kShareOfAsked * static_cast<float>(1.0 / (1.0 + portable_exp(-log_odds_of_asked)));
  }
}

}  // namespace kvasir::kv
