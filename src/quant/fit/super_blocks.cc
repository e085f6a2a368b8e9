// Formats of 256 numbers whose runs of 16 or 32 have a small integer as their scale, with a minimum or without.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/half.h"
#include "quant/fit/formats.h"
#include "quant/fit/importance.h"
#include "quant/fit/levels.h"
#include "quant/fit/one_scale.h"
#include "quant/fit/scale_min.h"
#include "quant/formats.h"

namespace kvasir::quant {
namespace {

constexpr int kElements = kSuperBlockElements;

float as_half(float value) { return half_to_float(float_to_half(value)); }

int clamped_ratio(float value, float unit, int low, int high) {
  if (unit == 0.0f) return std::clamp(0, low, high);
  return static_cast<int>(std::clamp(std::nearbyint(value / unit), static_cast<float>(low), static_cast<float>(high)));
}

// --- Layouts: how each format stores its scales and codes. ---

struct Q3_KLayout {
  using Format = Q3_K;
  using Levels = IntegerLevels<-4, 3>;
  static constexpr int kSubElements = 16, kLowScale = -32, kHighScale = 31;
  static void put_scales(Q3_K::Block& block, float unit, const int* scales) {
    block.scale = float_to_half(unit);
    std::memset(block.sub_scales, 0, sizeof block.sub_scales);
    for (int half = 0; half < 16; ++half) {
      const int stored = scales[half] + 32;
      std::uint8_t& low = block.sub_scales[half % 8];
      std::uint8_t& high = block.sub_scales[8 + half % 4];
      low = static_cast<std::uint8_t>(low | (stored & 15) << 4 * (half / 8));
      high = static_cast<std::uint8_t>(high | (stored >> 4) << 2 * (half / 4));
    }
  }
  static float scale_of(const Q3_K::Block& block, int sub) { return Q3_K::scale_of(block, sub); }
  static void put_codes(Q3_K::Block& block, const std::uint8_t* codes) {
    std::memset(block.low_bits, 0, sizeof block.low_bits);
    std::memset(block.high_bits, 0, sizeof block.high_bits);
    for (int e = 0; e < kElements; ++e) {
      const int s = e / 32, i = e % 32;
      std::uint8_t& low = block.low_bits[32 * (s / 4) + i];
      low = static_cast<std::uint8_t>(low | (codes[e] & 3) << 2 * (s % 4));
      block.high_bits[i] = static_cast<std::uint8_t>(block.high_bits[i] | (codes[e] >> 2) << s);
    }
  }
};
struct Q6_KLayout {
  using Format = Q6_K;
  using Levels = IntegerLevels<-32, 31>;
  static constexpr int kSubElements = 16, kLowScale = -128, kHighScale = 127;
  static void put_scales(Q6_K::Block& block, float unit, const int* scales) {
    block.scale = float_to_half(unit);
    for (int sub = 0; sub < 16; ++sub) block.sub_scales[sub] = static_cast<std::int8_t>(scales[sub]);
  }
  static float scale_of(const Q6_K::Block& block, int sub) {
    return half_to_float(block.scale) * static_cast<float>(block.sub_scales[sub]);
  }
  static void put_codes(Q6_K::Block& block, const std::uint8_t* codes) {
    std::memset(block.nibbles, 0, sizeof block.nibbles);
    std::memset(block.high_bits, 0, sizeof block.high_bits);
    for (int e = 0; e < kElements; ++e) {
      const int half = e / 128, column = e % 128 / 32, i = e % 32;
      std::uint8_t& nibble = block.nibbles[64 * half + 32 * (column % 2) + i];
      std::uint8_t& high = block.high_bits[32 * half + i];
      nibble = static_cast<std::uint8_t>(nibble | (codes[e] & 15) << 4 * (column / 2));
      high = static_cast<std::uint8_t>(high | (codes[e] >> 4) << 2 * column);
    }
  }
};
struct Iq4XsLayout {
  using Format = IQ4_XS;
  using Levels = TableLevels<Iq4Table>;
  static constexpr int kSubElements = 32, kLowScale = -32, kHighScale = 31;
  static void put_scales(IQ4_XS::Block& block, float unit, const int* scales) {
    block.scale = float_to_half(unit);
    block.high_scales = 0;
    std::memset(block.low_scales, 0, sizeof block.low_scales);
    for (int s = 0; s < 8; ++s) {
      const int stored = scales[s] + 32;
      block.low_scales[s / 2] = static_cast<std::uint8_t>(block.low_scales[s / 2] | (stored & 15) << 4 * (s % 2));
      block.high_scales = static_cast<std::uint16_t>(block.high_scales | (stored >> 4) << 2 * s);
    }
  }
  static float scale_of(const IQ4_XS::Block& block, int sub) {
    return half_to_float(block.scale) * static_cast<float>(IQ4_XS::sub_scale_of(block, sub));
  }
  static void put_codes(IQ4_XS::Block& block, const std::uint8_t* codes) {
    for (int s = 0; s < 8; ++s, codes += 32) {
      for (int i = 0; i < 16; ++i) {
        block.nibbles[16 * s + i] = static_cast<std::uint8_t>(codes[i] | codes[i + 16] << 4);
      }
    }
  }
};
// One scale for all 256: a run of its own whose integer is 1.
struct Tq2Layout {
  using Format = TQ2_0;
  using Levels = IntegerLevels<-1, 1>;
  static constexpr int kSubElements = 256, kLowScale = 1, kHighScale = 1;
  static void put_scales(TQ2_0::Block& block, float unit, const int*) { block.scale = float_to_half(unit); }
  static float scale_of(const TQ2_0::Block& block, int) { return half_to_float(block.scale); }
  static void put_codes(TQ2_0::Block& block, const std::uint8_t* codes) {
    std::memset(block.bits, 0, sizeof block.bits);
    for (int e = 0; e < kElements; ++e) {
      const int s = e / 32;
      std::uint8_t& bits = block.bits[32 * (s / 4) + e % 32];
      bits = static_cast<std::uint8_t>(bits | codes[e] << 2 * (s % 4));
    }
  }
};
struct Tq1Layout {
  using Format = TQ1_0;
  using Levels = IntegerLevels<-1, 1>;
  static constexpr int kSubElements = 256, kLowScale = 1, kHighScale = 1;
  static void put_scales(TQ1_0::Block& block, float unit, const int*) { block.scale = float_to_half(unit); }
  static float scale_of(const TQ1_0::Block& block, int) { return half_to_float(block.scale); }
  // Five base-3 digits in a byte, as the 8-bit fraction that the reader multiplies by powers of 3.
  static std::uint8_t byte_of(const std::uint8_t* codes, int stride, int count) {
    int value = 0;
    for (int n = 0; n < 5; ++n) value = 3 * value + (n < count ? codes[n * stride] : 0);
    return static_cast<std::uint8_t>((value * 256 + 242) / 243);
  }
  static void put_codes(TQ1_0::Block& block, const std::uint8_t* codes) {
    for (int i = 0; i < 32; ++i) block.digits[i] = byte_of(codes + i, 32, 5);
    for (int i = 0; i < 16; ++i) block.digits[32 + i] = byte_of(codes + 160 + i, 16, 5);
    for (int i = 0; i < 4; ++i) block.digits[48 + i] = byte_of(codes + 240 + i, 4, 4);
  }
};

// --- One scale a run ---

// The weighted error of runs with integer scales over a unit.
template <class Layout>
KVASIR_FIT_INLINE float error_of_runs(const float* x, const float* w, float unit, const int* scales) {
  constexpr int kSub = Layout::kSubElements;
  float error = 0.0f;
  for (int sub = 0; sub < kElements / kSub; ++sub) {
    error += error_with<typename Layout::Levels, kSub>(x + sub * kSub, w + sub * kSub,
                                                       unit * static_cast<float>(scales[sub]));
  }
  return error;
}

// Integer scales for a unit: each run's wanted scale rounded, then its neighbours tried.
template <class Layout>
KVASIR_FIT_INLINE void choose_scales(const float* x, const float* w, const float* wanted, float unit, int* scales) {
  constexpr int kSub = Layout::kSubElements;
  using Levels = typename Layout::Levels;
  for (int sub = 0; sub < kElements / kSub; ++sub) {
    const float* values = x + sub * kSub;
    const float* weights = w + sub * kSub;
    const int first = clamped_ratio(wanted[sub], unit, Layout::kLowScale, Layout::kHighScale);
    int best = first;
    float least = error_with<Levels, kSub>(values, weights, unit * static_cast<float>(first));
    for (int step = -1; step <= 1; step += 2) {
      const int scale = first + step;
      if (scale < Layout::kLowScale || scale > Layout::kHighScale) continue;
      const float error = error_with<Levels, kSub>(values, weights, unit * static_cast<float>(scale));
      if (error < least) {
        least = error;
        best = scale;
      }
    }
    scales[sub] = best;
  }
}

// The unit that errs least with the codes that unit and scales give.
template <class Layout>
KVASIR_FIT_INLINE float fitted_unit(const float* x, const float* w, float unit, const int* scales) {
  constexpr int kSub = Layout::kSubElements;
  float products = 0.0f, squares = 0.0f;
  for (int sub = 0; sub < kElements / kSub; ++sub) {
    const float scale = unit * static_cast<float>(scales[sub]);
    if (scale == 0.0f) continue;
    const ScaleSums sums = sums_with<typename Layout::Levels, kSub>(x + sub * kSub, w + sub * kSub, 1.0f / scale);
    products += sums.wxq * static_cast<float>(scales[sub]);
    squares += sums.wqq * static_cast<float>(scales[sub]) * static_cast<float>(scales[sub]);
  }
  return squares > 0.0f ? products / squares : unit;
}

template <class Layout>
KVASIR_FIT_CLONES void fit_super_scale(const float* x, const float* importance, std::int64_t num_blocks, std::byte* row) {
  using Format = typename Layout::Format;
  using Levels = typename Layout::Levels;
  constexpr int kSub = Layout::kSubElements, kNumSubs = kElements / kSub;
  for (std::int64_t b = 0; b < num_blocks; ++b, x += kElements, row += sizeof(typename Format::Block)) {
    float w[kElements], wanted[kNumSubs];
    weights_of<kElements>(importance == nullptr ? nullptr : importance + b * kElements, w);
    float largest = 0.0f;
    for (int sub = 0; sub < kNumSubs; ++sub) {
      wanted[sub] = best_scale<Levels, kSub>(x + sub * kSub, w + sub * kSub);
      if (std::fabs(wanted[sub]) > std::fabs(largest)) largest = wanted[sub];
    }
    // The largest one gets the outermost integer of its sign, and a few units around that are tried.
    constexpr int kOutermost = -Layout::kLowScale > Layout::kHighScale ? Layout::kLowScale : Layout::kHighScale;
    constexpr int kTries = kNumSubs > 1 ? 3 : 1;
    int scales[kNumSubs] = {}, best_scales[kNumSubs] = {};
    float best_unit = 0.0f, least = INFINITY;
    for (int i = 0; i < kTries; ++i) {
      float unit = as_half(largest / (static_cast<float>(kOutermost) * (1.0f - 0.06f * static_cast<float>(i))));
      choose_scales<Layout>(x, w, wanted, unit, scales);
      const float better = as_half(fitted_unit<Layout>(x, w, unit, scales));
      if (error_of_runs<Layout>(x, w, better, scales) < error_of_runs<Layout>(x, w, unit, scales)) unit = better;
      const float error = error_of_runs<Layout>(x, w, unit, scales);
      if (!(error < least)) continue;
      least = error;
      best_unit = unit;
      std::copy_n(scales, kNumSubs, best_scales);
    }
    typename Format::Block block{};
    Layout::put_scales(block, best_unit, best_scales);
    std::uint8_t codes[kElements];
    for (int e = 0; e < kElements; e += kLanes) {
      const float scale = Layout::scale_of(block, e / kSub);
      Levels::put_indices(lanes_at(x + e) * (scale != 0.0f ? 1.0f / scale : 0.0f), codes + e);
    }
    Layout::put_codes(block, codes);
    std::memcpy(row, &block, sizeof block);
  }
}

template <class Layout>
class SuperScaleFormat final : public BlockFormat<Layout> {
  using Format = typename Layout::Format;
  static constexpr int kSub = Layout::kSubElements;

 public:
  int sub_elements() const override { return kSub; }
  std::span<const float> levels() const override { return values_of_levels<typename Layout::Levels>(); }
  void fit(const float* x, const float* importance, std::int64_t num_elements, std::byte* row) const override {
    fit_super_scale<Layout>(x, importance, num_elements / kElements, row);
  }
  void read_grid(const std::byte* row, std::int64_t num_elements, SubGrid* grid) const override {
    for (std::int64_t b = 0; b < num_elements / kElements; ++b) {
      const auto block = block_at<typename Format::Block>(row, b);
      for (int sub = 0; sub < kElements / kSub; ++sub) *grid++ = {.scale = Layout::scale_of(block, sub)};
    }
  }
};

// --- A scale and a minimum a run ---

struct Q2_KLayout {
  using Format = Q2_K;
  static constexpr int kSubElements = 16, kMostCode = 3, kMostScale = 15;
  static void put_scales(Q2_K::Block& block, const int* scales, const int* mins) {
    for (int sub = 0; sub < 16; ++sub) block.sub_scales_mins[sub] = static_cast<std::uint8_t>(scales[sub] | mins[sub] << 4);
  }
  static SubGrid grid_of(const Q2_K::Block& block, int sub) {
    const std::uint8_t both = block.sub_scales_mins[sub];
    return {.scale = half_to_float(block.scale) * static_cast<float>(both & 15),
            .offset = -half_to_float(block.min_scale) * static_cast<float>(both >> 4)};
  }
  static void put_codes(Q2_K::Block& block, const std::uint8_t* codes) {
    std::memset(block.bits, 0, sizeof block.bits);
    for (int e = 0; e < kElements; ++e) {
      const int s = e / 32;
      std::uint8_t& bits = block.bits[32 * (s / 4) + e % 32];
      bits = static_cast<std::uint8_t>(bits | codes[e] << 2 * (s % 4));
    }
  }
};
template <class TheFormat, int kMost>
struct SixBitLayout {
  using Format = TheFormat;
  using Block = typename Format::Block;
  static constexpr int kSubElements = 32, kMostCode = kMost, kMostScale = 63;
  static void put_scales(Block& block, const int* scales, const int* mins) {
    std::uint8_t* packed = block.sub_scales_mins;
    std::memset(packed, 0, sizeof block.sub_scales_mins);
    for (int s = 0; s < 4; ++s) {
      packed[s] = static_cast<std::uint8_t>(scales[s] | (scales[s + 4] >> 4) << 6);
      packed[s + 4] = static_cast<std::uint8_t>(mins[s] | (mins[s + 4] >> 4) << 6);
      packed[s + 8] = static_cast<std::uint8_t>((scales[s + 4] & 15) | (mins[s + 4] & 15) << 4);
    }
  }
  static SubGrid grid_of(const Block& block, int sub) {
    return {.scale = half_to_float(block.scale) * static_cast<float>(sub_scale_of(block.sub_scales_mins, sub)),
            .offset = -half_to_float(block.min_scale) * static_cast<float>(sub_min_of(block.sub_scales_mins, sub))};
  }
  static void put_codes(Block& block, const std::uint8_t* codes) {
    std::memset(block.nibbles, 0, sizeof block.nibbles);
    if constexpr (kMost > 15) std::memset(block.high_bits, 0, sizeof block.high_bits);
    for (int e = 0; e < kElements; ++e) {
      const int s = e / 32, i = e % 32;
      std::uint8_t& nibble = block.nibbles[32 * (s / 2) + i];
      nibble = static_cast<std::uint8_t>(nibble | (codes[e] & 15) << 4 * (s % 2));
      if constexpr (kMost > 15) {
        block.high_bits[i] = static_cast<std::uint8_t>(block.high_bits[i] | (codes[e] >> 4) << s);
      }
    }
  }
};
using Q4_KLayout = SixBitLayout<Q4_K, 15>;
using Q5_KLayout = SixBitLayout<Q5_K, 31>;

struct Units {
  float scale = 0.0f, min = 0.0f;
};

template <class Layout>
KVASIR_FIT_INLINE float error_of_runs(const float* x, const float* w, Units units, const int* scales, const int* mins) {
  constexpr int kSub = Layout::kSubElements;
  float error = 0.0f;
  for (int sub = 0; sub < kElements / kSub; ++sub) {
    error += error_with<Layout::kMostCode, kSub>(
        x + sub * kSub, w + sub * kSub,
        {units.scale * static_cast<float>(scales[sub]), -units.min * static_cast<float>(mins[sub])});
  }
  return error;
}

// Integers for units: what a run wants, rounded, then the neighbours of both tried.
template <class Layout>
KVASIR_FIT_INLINE void choose_scales(const float* x, const float* w, const ScaleMin* wanted, Units units, int* scales,
                                     int* mins) {
  constexpr int kSub = Layout::kSubElements, kMost = Layout::kMostScale;
  for (int sub = 0; sub < kElements / kSub; ++sub) {
    const float* values = x + sub * kSub;
    const float* weights = w + sub * kSub;
    const auto error_at = [&](int scale, int min) __attribute__((always_inline)) {
      return error_with<Layout::kMostCode, kSub>(
          values, weights, {units.scale * static_cast<float>(scale), -units.min * static_cast<float>(min)});
    };
    int scale = clamped_ratio(wanted[sub].scale, units.scale, 0, kMost);
    int min = clamped_ratio(-wanted[sub].min, units.min, 0, kMost);
    float least = error_at(scale, min);
    constexpr int kSteps[6][2] = {{1, 0}, {-1, 0}, {0, 1}, {0, -1}, {1, 1}, {-1, -1}};
    const int first_scale = scale, first_min = min;
    for (const auto& step : kSteps) {
      const int other_scale = first_scale + step[0], other_min = first_min + step[1];
      if (other_scale < 0 || other_scale > kMost || other_min < 0 || other_min > kMost) continue;
      const float error = error_at(other_scale, other_min);
      if (!(error < least)) continue;
      least = error;
      scale = other_scale;
      min = other_min;
    }
    scales[sub] = scale;
    mins[sub] = min;
  }
}

// The units that err least with the codes that these ones give: least squares for x = scale unit a - min unit b.
template <class Layout>
KVASIR_FIT_INLINE Units fitted_units(const float* x, const float* w, Units units, const int* scales, const int* mins) {
  constexpr int kSub = Layout::kSubElements;
  float aa = 0.0f, ab = 0.0f, bb = 0.0f, xa = 0.0f, xb = 0.0f;
  for (int sub = 0; sub < kElements / kSub; ++sub) {
    const auto scale = static_cast<float>(scales[sub]), min = static_cast<float>(mins[sub]);
    const NumberSums numbers = sums_of_numbers<kSub>(x + sub * kSub, w + sub * kSub);
    const CodeSums<float> codes = sums_with<Layout::kMostCode, kSub>(x + sub * kSub, w + sub * kSub,
                                                                     {units.scale * scale, -units.min * min});
    aa += codes.wqq * scale * scale;
    ab += codes.wq * scale * min;
    bb += numbers.w * min * min;
    xa += codes.wxq * scale;
    xb += numbers.wx * min;
  }
  const float determinant = aa * bb - ab * ab;
  if (!(determinant > 0.0f)) return units;
  const Units found{(xa * bb - xb * ab) / determinant, (xa * ab - xb * aa) / determinant};
  return found.scale > 0.0f && found.min >= 0.0f ? found : units;
}

template <class Layout>
KVASIR_FIT_CLONES void fit_super_scale_min(const float* x, const float* importance, std::int64_t num_blocks,
                                           std::byte* row) {
  using Format = typename Layout::Format;
  constexpr int kSub = Layout::kSubElements, kNumSubs = kElements / kSub;
  for (std::int64_t b = 0; b < num_blocks; ++b, x += kElements, row += sizeof(typename Format::Block)) {
    float w[kElements];
    ScaleMin wanted[kNumSubs];
    weights_of<kElements>(importance == nullptr ? nullptr : importance + b * kElements, w);
    float most_scale = 0.0f, most_min = 0.0f;
    for (int sub = 0; sub < kNumSubs; ++sub) {
      wanted[sub] = best_scale_min<Layout::kMostCode, kSub>(x + sub * kSub, w + sub * kSub, 0.0f);
      most_scale = std::max(most_scale, wanted[sub].scale);
      most_min = std::max(most_min, -wanted[sub].min);
    }
    Units units{as_half(most_scale / Layout::kMostScale), as_half(most_min / Layout::kMostScale)};
    int scales[kNumSubs], mins[kNumSubs];
    choose_scales<Layout>(x, w, wanted, units, scales, mins);
    float least = error_of_runs<Layout>(x, w, units, scales, mins);
    for (int round = 0; round < 2; ++round) {
      const Units fitted = fitted_units<Layout>(x, w, units, scales, mins);
      const Units stored{as_half(fitted.scale), as_half(fitted.min)};
      const float error = error_of_runs<Layout>(x, w, stored, scales, mins);
      if (!(error < least)) break;
      least = error;
      units = stored;
    }
    typename Format::Block block{};
    block.scale = float_to_half(units.scale);
    block.min_scale = float_to_half(units.min);
    Layout::put_scales(block, scales, mins);
    std::uint8_t codes[kElements];
    for (int e = 0; e < kElements; e += kLanes) {
      const SubGrid grid = Layout::grid_of(block, e / kSub);
      const float inverse = grid.scale > 0.0f ? 1.0f / grid.scale : 0.0f;
      IntegerLevels<0, Layout::kMostCode>::put_indices((lanes_at(x + e) - grid.offset) * inverse, codes + e);
    }
    Layout::put_codes(block, codes);
    std::memcpy(row, &block, sizeof block);
  }
}

template <class Layout>
class SuperScaleMinFormat final : public BlockFormat<Layout> {
  using Format = typename Layout::Format;
  static constexpr int kSub = Layout::kSubElements;

 public:
  int sub_elements() const override { return kSub; }
  std::span<const float> levels() const override { return values_of_levels<IntegerLevels<0, Layout::kMostCode>>(); }
  void fit(const float* x, const float* importance, std::int64_t num_elements, std::byte* row) const override {
    fit_super_scale_min<Layout>(x, importance, num_elements / kElements, row);
  }
  void read_grid(const std::byte* row, std::int64_t num_elements, SubGrid* grid) const override {
    for (std::int64_t b = 0; b < num_elements / kElements; ++b) {
      const auto block = block_at<typename Format::Block>(row, b);
      for (int sub = 0; sub < kElements / kSub; ++sub) *grid++ = Layout::grid_of(block, sub);
    }
  }
};

}  // namespace

const GridFormat* super_block_format(DType dtype) {
  static const SuperScaleMinFormat<Q2_KLayout> q2_k;
  static const SuperScaleFormat<Q3_KLayout> q3_k;
  static const SuperScaleMinFormat<Q4_KLayout> q4_k;
  static const SuperScaleMinFormat<Q5_KLayout> q5_k;
  static const SuperScaleFormat<Q6_KLayout> q6_k;
  static const SuperScaleFormat<Iq4XsLayout> iq4_xs;
  static const SuperScaleFormat<Tq1Layout> tq1_0;
  static const SuperScaleFormat<Tq2Layout> tq2_0;
  switch (dtype) {
    case DType::kQ2_K: return &q2_k;
    case DType::kQ3_K: return &q3_k;
    case DType::kQ4_K: return &q4_k;
    case DType::kQ5_K: return &q5_k;
    case DType::kQ6_K: return &q6_k;
    case DType::kIQ4_XS: return &iq4_xs;
    case DType::kTQ1_0: return &tq1_0;
    case DType::kTQ2_0: return &tq2_0;
    default: return nullptr;
  }
}

}  // namespace kvasir::quant
