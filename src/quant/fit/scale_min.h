// The scale and minimum of a few numbers that err least: value = scale * code + minimum.
#pragma once

#include <cmath>

#include "quant/fit/lanes.h"

namespace kvasir::quant {

// One scale and minimum (float), or one in each lane (Lanes).
template <class T>
struct ScaleMinOf {
  T scale{}, min{};
};
using ScaleMin = ScaleMinOf<float>;

// Sums over the numbers alone.
struct NumberSums {
  float w = 0.0f, wx = 0.0f, wxx = 0.0f;
};

template <int kElements>
KVASIR_FIT_INLINE NumberSums sums_of_numbers(const float* x, const float* w) {
  Lanes sum_w{}, wx{}, wxx{};
  for (int i = 0; i < kElements; i += kLanes) {
    const Lanes values = lanes_at(x + i), weights = lanes_at(w + i), weighted = weights * values;
    sum_w += weights;
    wx += weighted;
    wxx += weighted * values;
  }
  return {sum_of(sum_w), sum_of(wx), sum_of(wxx)};
}

// Sums over the codes that a scale and minimum give.
template <class T>
struct CodeSums {
  T wq{}, wqq{}, wxq{};
};

template <int kMostCode, int kElements>
KVASIR_FIT_INLINE CodeSums<float> sums_with(const float* x, const float* w, ScaleMin of) {
  const float inverse = of.scale > 0.0f ? 1.0f / of.scale : 0.0f;
  Lanes wq{}, wqq{}, wxq{};
  for (int i = 0; i < kElements; i += kLanes) {
    const Lanes values = lanes_at(x + i);
    const Lanes q = rounded_into((values - of.min) * inverse, 0.0f, kMostCode), weighted_q = lanes_at(w + i) * q;
    wq += weighted_q;
    wqq += weighted_q * q;
    wxq += weighted_q * values;
  }
  return {sum_of(wq), sum_of(wqq), sum_of(wxq)};
}

// The same of eight scales, which are not zero, and minima.
template <int kMostCode, int kElements>
KVASIR_FIT_INLINE CodeSums<Lanes> sums_of_lanes(const float* x, const float* w, const ScaleMinOf<Lanes>& of) {
  const Lanes inverses = 1.0f / of.scale;
  CodeSums<Lanes> sums;
  for (int i = 0; i < kElements; ++i) {
    const Lanes q = rounded_into((x[i] - of.min) * inverses, 0.0f, kMostCode), weighted_q = w[i] * q;
    sums.wq += weighted_q;
    sums.wqq += weighted_q * q;
    sums.wxq += weighted_q * x[i];
  }
  return sums;
}

// The weighted squared error of these codes with that scale and minimum.
template <class T>
KVASIR_FIT_INLINE T error_of(const NumberSums& numbers, const CodeSums<T>& codes, const ScaleMinOf<T>& of) {
  return numbers.wxx - 2.0f * (of.scale * codes.wxq + of.min * numbers.wx) + of.scale * of.scale * codes.wqq +
         2.0f * of.scale * of.min * codes.wq + of.min * of.min * numbers.w;
}

// Least squares. `most_min`: the minimum is not above it; INFINITY: any.
template <class T>
KVASIR_FIT_INLINE ScaleMinOf<T> fitted_to(const NumberSums& numbers, const CodeSums<T>& codes, float most_min) {
  const T determinant = numbers.w * codes.wqq - codes.wq * codes.wq;
  const ScaleMinOf<T> free{(numbers.w * codes.wxq - codes.wq * numbers.wx) / determinant,
                           (codes.wqq * numbers.wx - codes.wq * codes.wxq) / determinant};
  const auto is_free = (determinant > 0.0f) & (free.scale > 0.0f) & (free.min <= most_min);
  const float min = most_min < INFINITY ? most_min : (numbers.w > 0.0f ? numbers.wx / numbers.w : 0.0f);
  const T scale = (codes.wxq - min * codes.wq) / codes.wqq;
  const T held = ((codes.wqq > 0.0f) & (scale > 0.0f)) ? scale : T{};
  return {is_free ? free.scale : held, is_free ? free.min : T{} + min};
}

// Nearest codes by a scale and minimum, and their weighted squared error, without sums of the codes.
template <int kMostCode, int kElements>
KVASIR_FIT_INLINE float error_with(const float* x, const float* w, ScaleMin of) {
  const float inverse = of.scale > 0.0f ? 1.0f / of.scale : 0.0f;
  Lanes error{};
  for (int i = 0; i < kElements; i += kLanes) {
    const Lanes values = lanes_at(x + i);
    const Lanes q = rounded_into((values - of.min) * inverse, 0.0f, kMostCode);
    const Lanes difference = q * of.scale + of.min - values;
    error += lanes_at(w + i) * difference * difference;
  }
  return sum_of(error);
}

// Eight of 24 first guesses. The ranges of sixteen are cut at both ends, the last one less than not at all. Eight begin at
// the least number: numbers that lie on levels already, as those of a quantised file do, are met by these.
template <int kMostCode>
KVASIR_FIT_INLINE ScaleMinOf<Lanes> starts_of(int group, float low, float range, float most_min) {
  if (group == 2) return {range / (static_cast<float>(kMostCode) - 1.2f + 0.3f * kLaneNumbers), all_lanes(low)};
  constexpr float kMostCut = 0.32f, kStep = 0.024f;  // of the range, shared by both ends
  const Lanes cut = kMostCut - kStep * (kLaneNumbers + static_cast<float>(kLanes * group));
  const Lanes from = most_min < INFINITY && low == most_min ? all_lanes(low) : low + 0.5f * range * cut;
  return {range * (1.0f - cut) / static_cast<float>(kMostCode), from > most_min ? all_lanes(most_min) : from};
}

// Each first guess gives codes, these the best scale and minimum. The best of all gives new codes, for a few rounds.
template <int kMostCode, int kElements>
KVASIR_FIT_INLINE ScaleMin best_scale_min(const float* x, const float* w, float most_min) {
  constexpr int kGroups = 3, kRefinements = 4;
  float low = x[0], high = x[0];
  for (int i = 1; i < kElements; ++i) {
    low = x[i] < low ? x[i] : low;
    high = x[i] > high ? x[i] : high;
  }
  low = low > most_min ? most_min : low;
  if (!(high > low)) return {0.0f, low};
  const float range = high - low;
  const NumberSums numbers = sums_of_numbers<kElements>(x, w);
  ScaleMin best{range / kMostCode, low};
  float best_error = error_with<kMostCode, kElements>(x, w, best);
  Lanes lane_error = all_lanes(best_error);
  ScaleMinOf<Lanes> lane_best{all_lanes(best.scale), all_lanes(best.min)};
  for (int group = 0; group < kGroups; ++group) {
    const auto codes = sums_of_lanes<kMostCode, kElements>(x, w, starts_of<kMostCode>(group, low, range, most_min));
    const ScaleMinOf<Lanes> fitted = fitted_to(numbers, codes, most_min);
    const Lanes error = error_of(numbers, codes, fitted);
    lane_best.scale = error < lane_error ? fitted.scale : lane_best.scale;
    lane_best.min = error < lane_error ? fitted.min : lane_best.min;
    lane_error = error < lane_error ? error : lane_error;
  }
  for (int i = 0; i < kLanes; ++i) {
    if (!(lane_error[i] < best_error)) continue;
    best = {lane_best.scale[i], lane_best.min[i]};
    best_error = lane_error[i];
  }
  for (int i = 0; i < kRefinements; ++i) {
    const CodeSums<float> codes = sums_with<kMostCode, kElements>(x, w, best);
    const ScaleMin fitted = fitted_to(numbers, codes, most_min);
    const float error = error_of(numbers, codes, fitted);
    if (!(error < best_error)) break;
    best = fitted;
    best_error = error;
  }
  return best;
}

}  // namespace kvasir::quant
