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
  float largest = 0.0f;
  for (int i = 0; i < kElements; ++i) largest = std::fabs(x[i]) > largest ? std::fabs(x[i]) : largest;
  return largest;
}

// Tries scales that put the largest number at, beyond and within the outermost level, of both signs where the levels are
// lopsided; then fits the best one to its codes until these stay.
template <class Levels, int kElements>
KVASIR_FIT_INLINE float best_scale(const float* x, const float* w) {
  constexpr int kTries = 18, kRefinements = 3;
  constexpr float kFirst = 0.62f, kStep = 0.03f;  // of the outermost level
  const float largest = largest_magnitude<kElements>(x);
  if (!(largest > 0.0f) || largest < 1e-30f) return 0.0f;
  const float outermost = -Levels::kLowest > Levels::kHighest ? -Levels::kLowest : Levels::kHighest;
  ScaleSums best;
  float best_inverse = 0.0f;
  const auto consider = [&](float inverse) __attribute__((always_inline)) {
    const ScaleSums sums = sums_with<Levels, kElements>(x, w, inverse);
    if (!(sums.gain() > best.gain())) return false;
    best = sums;
    best_inverse = inverse;
    return true;
  };
  for (int i = 0; i < kTries; ++i) {
    const float inverse = outermost * (kFirst + kStep * static_cast<float>(i)) / largest;
    consider(inverse);
    if (!Levels::kIsSymmetric) consider(-inverse);
  }
  for (int i = 0; i < kRefinements && best.wxq != 0.0f; ++i) {
    if (!consider(best.wqq / best.wxq)) break;
  }
  return best.wqq > 0.0f ? best.wxq / best.wqq : (best_inverse != 0.0f ? 1.0f / best_inverse : 0.0f);
}

}  // namespace kvasir::quant
