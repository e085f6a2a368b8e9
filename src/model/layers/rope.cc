#include "model/layers/rope.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <utility>

namespace kvasir::model {
namespace {

Result<std::vector<float>> load_divisors(WeightLoader& loader, const std::string& name,
                                         std::int32_t rotary_dim) {
  KVASIR_TRY(auto divisors, loader.vector(name, rotary_dim / 2));
  for (std::size_t i = 0; i < divisors.size(); ++i) {
    if (!(divisors[i] > 0.0f) && !loader.is_dry()) {
      return make_error(ErrorKind::kBadFile,
                        fmt::format("tensor {}: element {} must be above 0, is {}", name, i, divisors[i]));
    }
  }
  return divisors;
}

// Both sets are looked at: that of the other context must be no less sound.
Result<std::vector<float>> load_longrope(WeightLoader& loader, std::int32_t context_tokens,
                                         const RopeConfig& rope) {
  KVASIR_TRY(auto short_factors, load_divisors(loader, "rope_factors_short.weight", rope.rotary_dim));
  KVASIR_TRY(auto long_factors, load_divisors(loader, "rope_factors_long.weight", rope.rotary_dim));
  return context_tokens > rope.original_context_tokens ? std::move(long_factors) : std::move(short_factors);
}

// The index of the frequency at which a vector turns so many times within the original context.
double yarn_border(const RopeConfig& rope, double num_turns) {
  return rope.rotary_dim * std::log(rope.original_context_tokens / (num_turns * 2.0 * std::numbers::pi)) /
         (2.0 * std::log(rope.freq_base));
}

// Frequencies before the first border stay, those behind the second are divided, and a line lies between.
void apply_yarn(const RopeConfig& rope, std::vector<double>& inverse) {
  double low = yarn_border(rope, rope.yarn_beta_fast), high = yarn_border(rope, rope.yarn_beta_slow);
  if (rope.yarn_rounds) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, rope.rotary_dim - 1.0);
  if (low == high) high += 0.001;
  for (std::size_t i = 0; i < inverse.size(); ++i) {
    const double divided = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    inverse[i] = inverse[i] / rope.factor * divided + inverse[i] * (1.0 - divided);
  }
}

}  // namespace

Status load_freq_factors(WeightLoader& loader, std::int32_t context_tokens, ModelConfig& config) {
  std::vector<RopeConfig*> ropes = {&config.rope};
  for (RopeConfig& rope : config.layer_ropes) ropes.push_back(&rope);
  for (RopeConfig* rope : ropes) {
    if (!rope->takes_freq_factors || rope->rotary_dim == 0) continue;
    if (rope->scaling == RopeScaling::kLongRope) {
      KVASIR_TRY(rope->freq_factors, load_longrope(loader, context_tokens, *rope));
    } else if (loader.has("rope_freqs.weight")) {
      KVASIR_TRY(rope->freq_factors, load_divisors(loader, "rope_freqs.weight", rope->rotary_dim));
    }
  }
  return {};
}

std::vector<double> inverse_frequencies(const RopeConfig& rope) {
  // theta_i = base^(-2i/d), divided by the linear factor and by the file's own per-frequency factors.
  std::vector<double> inverse(static_cast<std::size_t>(rope.rotary_dim / 2));
  for (std::size_t i = 0; i < inverse.size(); ++i) {
    const double exponent = -2.0 * static_cast<double>(i) / rope.rotary_dim;
    inverse[i] = std::pow(rope.freq_base, exponent);
    if (rope.scaling == RopeScaling::kLinear) inverse[i] /= rope.factor;
    if (!rope.freq_factors.empty()) inverse[i] /= rope.freq_factors[i];
  }
  if (rope.scaling == RopeScaling::kYarn) apply_yarn(rope, inverse);
  return inverse;
}

std::int32_t RopeKinds::add(const RopeConfig& rope, backend::RopeStyle style) {
  const auto known = std::ranges::find_if(
      kinds_, [&](const Kind& kind) { return kind.config == rope && kind.style == style; });
  if (known != kinds_.end()) return static_cast<std::int32_t>(known - kinds_.begin());
  kinds_.push_back({rope, style, inverse_frequencies(rope)});
  tables_.clear();
  for (const Kind& kind : kinds_) {
    tables_.push_back({.inverse_frequencies = kind.inverse_frequencies,
                       .style = kind.style,
                       .factor = static_cast<float>(kind.config.attention_factor)});
  }
  return static_cast<std::int32_t>(kinds_.size()) - 1;
}

const backend::RopeTable* RopeKinds::find(const RopeConfig& rope) const {
  const auto known = std::ranges::find(kinds_, rope, &Kind::config);
  return known == kinds_.end() ? nullptr : &tables_[static_cast<std::size_t>(known - kinds_.begin())];
}

}  // namespace kvasir::model
