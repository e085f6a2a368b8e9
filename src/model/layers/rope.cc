#include "model/layers/rope.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace kvasir::model {

Result<std::vector<float>> load_freq_factors(WeightLoader& loader, const RopeConfig& rope) {
  KVASIR_TRY(auto factors, loader.optional_vector("rope_freqs.weight", rope.rotary_dim / 2));
  for (std::size_t i = 0; i < factors.size(); ++i) {
    if (!(factors[i] > 0.0f)) {
      return make_error(
          ErrorKind::kBadFile,
          fmt::format("tensor rope_freqs.weight: element {} must be above 0, is {}", i, factors[i]));
    }
  }
  return factors;
}

std::int32_t RopeKinds::add(const RopeConfig& rope, kernels::RopeStyle style) {
  // theta_i = base^(-2i/d), divided by the linear factor and by the file's own per-frequency factors.
  std::vector<double> inverse(static_cast<std::size_t>(rope.rotary_dim / 2));
  for (std::size_t i = 0; i < inverse.size(); ++i) {
    const double exponent = -2.0 * static_cast<double>(i) / rope.rotary_dim;
    inverse[i] = std::pow(rope.freq_base, exponent);
    if (rope.scaling == RopeScaling::kLinear) inverse[i] /= rope.factor;
    if (!rope.freq_factors.empty()) inverse[i] /= rope.freq_factors[i];
  }
  kinds_.push_back({std::move(inverse), style});
  tables_.clear();
  for (const Kind& kind : kinds_) tables_.push_back({kind.inverse_frequencies, kind.style});
  return static_cast<std::int32_t>(kinds_.size()) - 1;
}

}  // namespace kvasir::model
