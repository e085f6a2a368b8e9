// The scale of a few numbers that errs least: value = scale * level.
#pragma once

#include <cmath>

#include "quant/fit/lanes.h"

namespace kvasir::quant {

// What a choice of codes is worth: with levels q the best scale is wxq / wqq, and it saves wxq^2 / wqq of the squared
// error that zeros would have.
struct ScaleSums {
  float wxq = 0.0f, wqq = 0.0f;

  float gain() const { return wqq > 0.0f ? wxq * wxq / wqq : 0.0f; }
};

// `x` and `w`: kElements numbers and what an error of each counts.
template <class Levels, int kElements>
KVASIR_FIT_INLINE ScaleSums sums_with(const float* x, const float* w, float inverse) {
  Lanes wxq{}, wqq{};
  for (int i = 0; i < kElements; i += kLanes) {
    const Lanes values = lanes_at(x + i);
    const Lanes q = Levels::nearest(values * inverse);
    const Lanes wq = lanes_at(w + i) * q;
    wxq += wq * values;
    wqq += wq * q;
  }
  return {sum_of(wxq), sum_of(wqq)};
}

// The weighted squared error of the nearest codes.
template <class Levels, int kElements>
KVASIR_FIT_INLINE float error_with(const float* x, const float* w, float scale) {
  const float inverse = scale != 0.0f ? 1.0f / scale : 0.0f;
  Lanes error{};
  for (int i = 0; i < kElements; i += kLanes) {
    const Lanes values = lanes_at(x + i);
    const Lanes difference = Levels::nearest(values * inverse) * scale - values;
    error += lanes_at(w + i) * difference * difference;
  }
  return sum_of(error);
}

template <int kElements>
KVASIR_FIT_INLINE float largest_magnitude(const float* x) {
  Lanes most{};
  for (int i = 0; i < kElements; i += kLanes) {
    const Lanes values = lanes_at(x + i), magnitudes = values < Lanes{} ? -values : values;
    most = magnitudes > most ? magnitudes : most;
  }
  float largest = 0.0f;
  for (int i = 0; i < kLanes; ++i) largest = most[i] > largest ? most[i] : largest;
  return largest;
}

// Scales are tried that put the largest number at, beyond and within the outermost level, of both signs where the levels
// are lopsided. `unit`: the inverse scale that puts it at that level. Each lane tries a scale of its own, so a number is
// read once for all of them. With up to 16 levels a few scales find the place, and as many around it the scale; more levels have
// good scales everywhere.
template <class Levels, int kElements>
KVASIR_FIT_INLINE ScaleSums best_of_tries(const float* x, const float* w, float unit) {
  constexpr bool kHasTwoRounds = Levels::kCount <= 16;
  constexpr int kTries = kHasTwoRounds ? kLanes : 3 * kLanes;
  constexpr float kFirst = 0.62f, kStep = kHasTwoRounds ? 0.075f : 0.0225f, kFineStep = 0.0166f;  // of the unit
  Lanes best_gain{}, best_wxq{}, best_wqq{}, best_inverse{};
  const auto consider = [&](const Lanes& inverses) __attribute__((always_inline)) {
    Lanes wxq{}, wqq{};
    for (int i = 0; i < kElements; ++i) {
      const Lanes q = Levels::nearest(inverses * x[i]), wq = q * w[i];
      wxq += wq * x[i];
      wqq += wq * q;
    }
    const Lanes gain = wxq * wxq / wqq;  // not a number where all levels are zero: never more
    best_wxq = gain > best_gain ? wxq : best_wxq;
    best_wqq = gain > best_gain ? wqq : best_wqq;
    best_inverse = gain > best_gain ? inverses : best_inverse;
    best_gain = gain > best_gain ? gain : best_gain;
  };
  const auto best_lane = [&]() __attribute__((always_inline)) {
    int best = 0;
    for (int i = 1; i < kLanes; ++i) best = best_gain[i] > best_gain[best] ? i : best;
    return best;
  };
  for (int i = 0; i < kTries; i += kLanes) {
    const Lanes inverses = (kFirst + kStep * (kLaneNumbers + static_cast<float>(i))) * unit;
    consider(inverses);
    if (!Levels::kIsSymmetric) consider(-inverses);
  }
  if (kHasTwoRounds) consider(best_inverse[best_lane()] + (kLaneNumbers - 0.5f * (kLanes - 1)) * (kFineStep * unit));
  const int best = best_lane();
  return {best_wxq[best], best_wqq[best]};
}

// The best of some scales, fitted to its codes until these stay.
template <class Levels, int kElements>
KVASIR_FIT_INLINE float best_scale(const float* x, const float* w) {
  constexpr int kRefinements = 3;
  const float largest = largest_magnitude<kElements>(x);
  if (!(largest > 0.0f) || largest < 1e-30f) return 0.0f;
  const float unit = (-Levels::kLowest > Levels::kHighest ? -Levels::kLowest : Levels::kHighest) / largest;
  ScaleSums best = best_of_tries<Levels, kElements>(x, w, unit);
  for (int i = 0; i < kRefinements && best.wxq != 0.0f; ++i) {
    const ScaleSums sums = sums_with<Levels, kElements>(x, w, best.wqq / best.wxq);
    if (!(sums.gain() > best.gain())) break;
    best = sums;
  }
  return best.wqq > 0.0f ? best.wxq / best.wqq : 1.0f / unit;
}

}  // namespace kvasir::quant
