#include "spec/survival.h"

#include <algorithm>
#include <cmath>

namespace kvasir::spec {
namespace {

// The sum of all errors is bounded by the logarithm of the greatest power over this.
constexpr double kShareOfError = 0.02;
constexpr double kMostPower = 16.0;

}  // namespace

double Survival::after(double before, double estimate) const { return before * std::pow(estimate, power_); }

void Survival::observe(double survival, bool is_right) {
  const double too_much = survival - (is_right ? 1.0 : 0.0);
  power_ = std::clamp(power_ * std::exp(kShareOfError * too_much), 1.0 / kMostPower, kMostPower);
}

}  // namespace kvasir::spec
