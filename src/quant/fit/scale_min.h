// The scale and minimum of a few numbers that err least: value = scale * code + minimum.
#pragma once

#include <cmath>

#include "quant/fit/lanes.h"

namespace kvasir::quant {

struct ScaleMin {
  float scale = 0.0f, min = 0.0f;
};

// Sums of what the best scale and minimum of given codes follow from.
struct ScaleMinSums {
  float w = 0.0f, wx = 0.0f, wxx = 0.0f, wq = 0.0f, wqq = 0.0f, wxq = 0.0f;
};

template <int kMostCode, int kElements>
KVASIR_FIT_INLINE ScaleMinSums sums_with(const float* x, const float* w, ScaleMin of) {
  const float inverse = of.scale > 0.0f ? 1.0f / of.scale : 0.0f;
  Lanes sum_w{}, wx{}, wxx{}, wq{}, wqq{}, wxq{};
  for (int i = 0; i < kElements; i += kLanes) {
    const Lanes values = lanes_at(x + i), weights = lanes_at(w + i);
    const Lanes q = rounded(clamped((values - of.min) * inverse, 0.0f, kMostCode));
    const Lanes weighted = weights * values, weighted_q = weights * q;
    sum_w += weights;
    wx += weighted;
    wxx += weighted * values;
    wq += weighted_q;
    wqq += weighted_q * q;
    wxq += weighted * q;
  }
  return {sum_of(sum_w), sum_of(wx), sum_of(wxx), sum_of(wq), sum_of(wqq), sum_of(wxq)};
}

// The weighted squared error of these codes with that scale and minimum.
KVASIR_FIT_INLINE float error_of(const ScaleMinSums& sums, ScaleMin of) {
  return sums.wxx - 2.0f * (of.scale * sums.wxq + of.min * sums.wx) + of.scale * of.scale * sums.wqq +
         2.0f * of.scale * of.min * sums.wq + of.min * of.min * sums.w;
}

// Least squares. `most_min`: the minimum is not above it; INFINITY: any.
KVASIR_FIT_INLINE ScaleMin fitted_to(const ScaleMinSums& sums, float most_min) {
  const float determinant = sums.w * sums.wqq - sums.wq * sums.wq;
  if (determinant > 0.0f) {
    const ScaleMin found{(sums.w * sums.wxq - sums.wq * sums.wx) / determinant,
                         (sums.wqq * sums.wx - sums.wq * sums.wxq) / determinant};
    if (found.scale > 0.0f && found.min <= most_min) return found;
  }
  const float min = most_min < INFINITY ? most_min : (sums.w > 0.0f ? sums.wx / sums.w : 0.0f);
  const float scale = sums.wqq > 0.0f ? (sums.wxq - min * sums.wq) / sums.wqq : 0.0f;
  return {scale > 0.0f ? scale : 0.0f, min};
}

// Nearest codes by a scale and minimum, and their weighted squared error, without sums of the codes.
template <int kMostCode, int kElements>
KVASIR_FIT_INLINE float error_with(const float* x, const float* w, ScaleMin of) {
  const float inverse = of.scale > 0.0f ? 1.0f / of.scale : 0.0f;
  Lanes error{};
  for (int i = 0; i < kElements; i += kLanes) {
    const Lanes values = lanes_at(x + i);
    const Lanes q = rounded(clamped((values - of.min) * inverse, 0.0f, kMostCode));
    const Lanes difference = q * of.scale + of.min - values;
    error += lanes_at(w + i) * difference * difference;
  }
  return sum_of(error);
}

// Tries ranges that cover all numbers, more or less than them; each gives codes, these the best scale and minimum, and
// these new codes, for a few rounds. Ranges are cut at both ends, or begin at the least number: numbers that lie on levels
// already, as those of a quantised file do, are met by these.
template <int kMostCode, int kElements>
KVASIR_FIT_INLINE ScaleMin best_scale_min(const float* x, const float* w, float most_min) {
  constexpr int kTries = 10, kRefinements = 4;
  constexpr float kMostCut = 0.30f;  // of the range, shared by both ends
  float low = x[0], high = x[0];
  for (int i = 1; i < kElements; ++i) {
    low = x[i] < low ? x[i] : low;
    high = x[i] > high ? x[i] : high;
  }
  low = low > most_min ? most_min : low;
  if (!(high > low)) return {0.0f, low};
  const float range = high - low;
  ScaleMin best{range / kMostCode, low};
  float best_error = error_with<kMostCode, kElements>(x, w, best);
  const auto consider = [&](ScaleMin start) __attribute__((always_inline)) {
    const ScaleMinSums sums = sums_with<kMostCode, kElements>(x, w, start);
    const ScaleMin fitted = fitted_to(sums, most_min);
    const float error = error_of(sums, fitted);
    if (!(error < best_error)) return false;
    best = fitted;
    best_error = error;
    return true;
  };
  for (int i = 0; i < kTries; ++i) {
    const float cut = kMostCut * static_cast<float>(i - 1) / (kTries - 2);  // the first range is wider than the numbers
    const float width = range * (1.0f - cut);
    const float from = most_min < INFINITY && low == most_min ? low : low + 0.5f * range * cut;
    consider({width / kMostCode, from > most_min ? most_min : from});
  }
  constexpr int kAnchored = 8;
  for (int i = 0; i < kAnchored; ++i) consider({range / (kMostCode - 1.2f + 0.3f * static_cast<float>(i)), low});
  for (int i = 0; i < kRefinements; ++i) {
    if (!consider(best)) break;
  }
  return best;
}

}  // namespace kvasir::quant
