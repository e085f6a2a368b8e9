#include "base/e_process.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace kvasir {
namespace {

// Shares of the greatest rate, at which an observation of 0 takes the whole stake.
constexpr std::array<double, 6> kShares = {0.9, 0.6, 0.3, 0.15, 0.07, 0.03};

}  // namespace

EProcess::EProcess(double promise) : promise_(promise) {
  CHECK(promise > 0.0 && promise < 1.0);
  for (std::size_t i = 0; i < kNumRates; ++i) rates_[i] = kShares[i] / promise;
}

void EProcess::add(double observation) {
  const double x = std::clamp(observation, 0.0, 1.0);  // NaN stays, and is no evidence
  if (!(x >= 0.0)) return;
  ++count_;
  const auto n = static_cast<double>(count_);
  const double stake = 1.0 / (n * (n + 1.0)) / static_cast<double>(kNumRates);
  evidence_ = 0.0;
  for (std::size_t i = 0; i < kNumRates; ++i) {
    capital_[i] = std::min(1e200, (capital_[i] + stake) * (1.0 + rates_[i] * (x - promise_)));
    evidence_ += capital_[i];
  }
}

double EProcess::log10_evidence() const { return std::log10(std::max(1e-9, evidence_)); }

}  // namespace kvasir
