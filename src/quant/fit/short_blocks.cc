// Formats with one scale for 16, 32 or 64 numbers, with a minimum or without.
#include <array>
#include <bit>
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

// Doubled E2M1 numbers; zero once.
struct E2m1Table {
  static constexpr std::array<float, 15> kLevels = {-12, -8, -6, -4, -3, -2, -1, 0, 1, 2, 3, 4, 6, 8, 12};
  static std::uint8_t nibble_of(int index) {
    return static_cast<std::uint8_t>(index >= 7 ? index - 7 : 8 + (7 - index));
  }
};
struct SignTable {
  static constexpr std::array<float, 2> kLevels = {-1, 1};
};

void put_nibbles(const std::uint8_t* codes, std::uint8_t* nibbles) {
  for (int i = 0; i < 16; ++i) nibbles[i] = static_cast<std::uint8_t>((codes[i] & 15) | codes[i + 16] << 4);
}
void put_fifth_bits(const std::uint8_t* codes, std::uint8_t* high_bits) {
  std::memset(high_bits, 0, 4);
  for (int i = 0; i < 32; ++i) {
    high_bits[i / 8] = static_cast<std::uint8_t>(high_bits[i / 8] | (codes[i] >> 4 & 1) << (i % 8));
  }
}

// How each format stores a scale and codes. A scale is the one that is stored, as a float.
struct Q4_0Layout {
  using Format = Q4_0;
  using Levels = IntegerLevels<-8, 7>;
  static constexpr int kSubElements = 32;
  static float put_scale(Q4_0::Block& block, int, float scale) { return half_to_float(block.scale = float_to_half(scale)); }
  static float scale_of(const Q4_0::Block& block, int) { return half_to_float(block.scale); }
  static void put_codes(Q4_0::Block& block, const std::uint8_t* codes) { put_nibbles(codes, block.nibbles); }
};
struct Q5_0Layout {
  using Format = Q5_0;
  using Levels = IntegerLevels<-16, 15>;
  static constexpr int kSubElements = 32;
  static float put_scale(Q5_0::Block& block, int, float scale) { return half_to_float(block.scale = float_to_half(scale)); }
  static float scale_of(const Q5_0::Block& block, int) { return half_to_float(block.scale); }
  static void put_codes(Q5_0::Block& block, const std::uint8_t* codes) {
    put_nibbles(codes, block.nibbles);
    put_fifth_bits(codes, block.high_bits);
  }
};
struct Iq4NlLayout {
  using Format = IQ4_NL;
  using Levels = TableLevels<Iq4Table>;
  static constexpr int kSubElements = 32;
  static float put_scale(IQ4_NL::Block& block, int, float scale) { return half_to_float(block.scale = float_to_half(scale)); }
  static float scale_of(const IQ4_NL::Block& block, int) { return half_to_float(block.scale); }
  static void put_codes(IQ4_NL::Block& block, const std::uint8_t* codes) { put_nibbles(codes, block.nibbles); }
};
struct Q2_0Layout {
  using Format = Q2_0;
  using Levels = IntegerLevels<-1, 2>;
  static constexpr int kSubElements = 64;
  static float put_scale(Q2_0::Block& block, int, float scale) { return half_to_float(block.scale = float_to_half(scale)); }
  static float scale_of(const Q2_0::Block& block, int) { return half_to_float(block.scale); }
  static void put_codes(Q2_0::Block& block, const std::uint8_t* codes) {
    std::memset(block.bits, 0, sizeof block.bits);
    for (int i = 0; i < 64; ++i) {
      block.bits[i / 4] = static_cast<std::uint8_t>(block.bits[i / 4] | codes[i] << 2 * (i % 4));
    }
  }
};
struct Q1_0Layout {
  using Format = Q1_0;
  using Levels = TableLevels<SignTable>;
  static constexpr int kSubElements = 128;
  static float put_scale(Q1_0::Block& block, int, float scale) { return half_to_float(block.scale = float_to_half(scale)); }
  static float scale_of(const Q1_0::Block& block, int) { return half_to_float(block.scale); }
  static void put_codes(Q1_0::Block& block, const std::uint8_t* codes) {
    std::memset(block.bits, 0, sizeof block.bits);
    for (int i = 0; i < 128; ++i) {
      block.bits[i / 8] = static_cast<std::uint8_t>(block.bits[i / 8] | codes[i] << (i % 8));
    }
  }
};
struct NvFp4Layout {
  using Format = NVFP4;
  using Levels = TableLevels<E2m1Table>;
  static constexpr float kOtherScales[] = {0.92f, 1.08f};
  static constexpr int kSubElements = 16;
  static float put_scale(NVFP4::Block& block, int sub, float scale) {
    int best = 0;
    const float wanted = 2.0f * std::fabs(scale);
    for (int code = 1; code < 127; ++code) {
      const float value = ue4m3_to_float(static_cast<std::uint8_t>(code));
      if (std::fabs(value - wanted) < std::fabs(ue4m3_to_float(static_cast<std::uint8_t>(best)) - wanted)) best = code;
    }
    block.scales[sub] = static_cast<std::uint8_t>(best);
    return scale_of(block, sub);
  }
  static float scale_of(const NVFP4::Block& block, int sub) { return 0.5f * ue4m3_to_float(block.scales[sub]); }
  static void put_codes(NVFP4::Block& block, const std::uint8_t* codes) {
    for (int sub = 0; sub < 4; ++sub) {
      for (int i = 0; i < 8; ++i) {
        block.nibbles[sub][i] = static_cast<std::uint8_t>(E2m1Table::nibble_of(codes[16 * sub + i]) |
                                                          E2m1Table::nibble_of(codes[16 * sub + i + 8]) << 4);
      }
    }
  }
};
struct MxFp4Layout {
  using Format = MXFP4;
  using Levels = TableLevels<E2m1Table>;
  static constexpr float kOtherScales[] = {0.5f, 2.0f};
  static constexpr int kSubElements = 32;
  // The nearest power of two.
  static float put_scale(MXFP4::Block& block, int, float scale) {
    const float wanted = 2.0f * std::fabs(scale);
    const int exponent = wanted > 0.0f ? static_cast<int>(std::nearbyint(std::log2(wanted))) + 127 : 0;
    block.exponent = static_cast<std::uint8_t>(std::clamp(exponent, 0, 254));
    return scale_of(block, 0);
  }
  static float scale_of(const MXFP4::Block& block, int) { return 0.5f * e8m0_to_float(block.exponent); }
  static void put_codes(MXFP4::Block& block, const std::uint8_t* codes) {
    for (int i = 0; i < 16; ++i) {
      block.nibbles[i] =
          static_cast<std::uint8_t>(E2m1Table::nibble_of(codes[i]) | E2m1Table::nibble_of(codes[i + 16]) << 4);
    }
  }
};

template <class Layout>
KVASIR_FIT_CLONES void fit_one_scale(const float* x, const float* importance, std::int64_t num_blocks, std::byte* row) {
  using Format = typename Layout::Format;
  using Levels = typename Layout::Levels;
  constexpr int kElements = Format::kBlockElements, kSub = Layout::kSubElements;
  for (std::int64_t b = 0; b < num_blocks; ++b, x += kElements, row += sizeof(typename Format::Block)) {
    typename Format::Block block{};
    float weights[kElements];
    weights_of<kElements>(importance == nullptr ? nullptr : importance + b * kElements, weights);
    std::uint8_t codes[kElements];
    for (int sub = 0; sub < kElements / kSub; ++sub) {
      const float* values = x + sub * kSub;
      const float wanted = best_scale<Levels, kSub>(values, weights + sub * kSub);
      float scale = Layout::put_scale(block, sub, wanted);
      if constexpr (requires { Layout::kOtherScales; }) {  // few scales can be stored: the neighbours may err less
        float least = error_with<Levels, kSub>(values, weights + sub * kSub, scale);
        for (const float factor : Layout::kOtherScales) {
          const float other = Layout::put_scale(block, sub, wanted * factor);
          const float error = error_with<Levels, kSub>(values, weights + sub * kSub, other);
          scale = error < least ? other : scale;
          least = error < least ? error : least;
        }
        scale = Layout::put_scale(block, sub, scale);
      }
      const float inverse = scale != 0.0f ? 1.0f / scale : 0.0f;
      for (int i = 0; i < kSub; i += kLanes) Levels::put_indices(lanes_at(values + i) * inverse, codes + sub * kSub + i);
    }
    Layout::put_codes(block, codes);
    std::memcpy(row, &block, sizeof block);
  }
}

template <class Layout>
class OneScaleFormat final : public BlockFormat<Layout> {
  using Format = typename Layout::Format;
  using Levels = typename Layout::Levels;
  static constexpr int kElements = Format::kBlockElements, kSub = Layout::kSubElements;

 public:
  int sub_elements() const override { return kSub; }
  std::span<const float> levels() const override { return values_of_levels<Levels>(); }
  void fit(const float* x, const float* importance, std::int64_t num_elements, std::byte* row) const override {
    fit_one_scale<Layout>(x, importance, num_elements / kElements, row);
  }
  void read_grid(const std::byte* row, std::int64_t num_elements, SubGrid* grid) const override {
    for (std::int64_t b = 0; b < num_elements / kElements; ++b) {
      const auto block = block_at<typename Format::Block>(row, b);
      for (int sub = 0; sub < kElements / kSub; ++sub) *grid++ = {.scale = Layout::scale_of(block, sub)};
    }
  }
};

struct Q4_1Layout {
  using Format = Q4_1;
  static constexpr int kMostCode = 15;
  static void put_codes(Q4_1::Block& block, const std::uint8_t* codes) { put_nibbles(codes, block.nibbles); }
};
struct Q5_1Layout {
  using Format = Q5_1;
  static constexpr int kMostCode = 31;
  static void put_codes(Q5_1::Block& block, const std::uint8_t* codes) {
    put_nibbles(codes, block.nibbles);
    put_fifth_bits(codes, block.high_bits);
  }
};

template <class Layout>
KVASIR_FIT_CLONES void fit_scale_min(const float* x, const float* importance, std::int64_t num_blocks, std::byte* row) {
  constexpr int kElements = 32, kMostCode = Layout::kMostCode;
  for (std::int64_t b = 0; b < num_blocks; ++b, x += kElements, row += sizeof(typename Layout::Format::Block)) {
    typename Layout::Format::Block block{};
    float weights[kElements];
    weights_of<kElements>(importance == nullptr ? nullptr : importance + b * kElements, weights);
    const ScaleMin found = best_scale_min<kMostCode, kElements>(x, weights, INFINITY);
    block.scale = float_to_half(found.scale);
    block.min = float_to_half(found.min);
    const float scale = half_to_float(block.scale), min = half_to_float(block.min);
    const float inverse = scale > 0.0f ? 1.0f / scale : 0.0f;
    std::uint8_t codes[kElements];
    for (int i = 0; i < kElements; i += kLanes) {
      IntegerLevels<0, kMostCode>::put_indices((lanes_at(x + i) - min) * inverse, codes + i);
    }
    Layout::put_codes(block, codes);
    std::memcpy(row, &block, sizeof block);
  }
}

template <class Layout>
class ScaleMinFormat final : public BlockFormat<Layout> {
  using Format = typename Layout::Format;
  static constexpr int kElements = Format::kBlockElements;

 public:
  int sub_elements() const override { return kElements; }
  std::span<const float> levels() const override { return values_of_levels<IntegerLevels<0, Layout::kMostCode>>(); }
  void fit(const float* x, const float* importance, std::int64_t num_elements, std::byte* row) const override {
    fit_scale_min<Layout>(x, importance, num_elements / kElements, row);
  }
  void read_grid(const std::byte* row, std::int64_t num_elements, SubGrid* grid) const override {
    for (std::int64_t b = 0; b < num_elements / kElements; ++b) {
      const auto block = block_at<typename Format::Block>(row, b);
      *grid++ = {.scale = half_to_float(block.scale), .offset = half_to_float(block.min)};
    }
  }
};

// To the nearest integer, away from zero in the middle of two, as std::round does. Requires: magnitudes below 2^31.
KVASIR_FIT_INLINE Lanes rounded_away(Lanes v) {
  using Integers [[gnu::vector_size(4 * kLanes)]] = std::int32_t;
  const Lanes whole = __builtin_convertvector(__builtin_convertvector(v, Integers), Lanes), rest = v - whole;  // exact
  const Lanes up = whole + 1.0f, down = whole - 1.0f;
  const Lanes raised = rest >= all_lanes(0.5f) ? up : whole;
  return rest <= all_lanes(-0.5f) ? down : raised;
}

KVASIR_FIT_CLONES void fit_q8_0(const float* x, std::int64_t num_blocks, std::byte* row) {
  constexpr int kElements = Q8_0::kBlockElements;
  for (std::int64_t b = 0; b < num_blocks; ++b, x += kElements) {
    const float scale = largest_magnitude<kElements>(x) / 127.0f, inverse = scale > 0.0f ? 1.0f / scale : 0.0f;
    Q8_0::Block block;
    block.scale = float_to_half(scale);
    for (int i = 0; i < kElements; i += kLanes) put_bytes(rounded_away(lanes_at(x + i) * inverse), block.codes + i);
    std::memcpy(row + b * static_cast<std::int64_t>(sizeof block), &block, sizeof block);
  }
}

// As the reference rounds it, with the largest magnitude at 127: files of this type are the same whoever makes them.
class Q8_0Format final : public GridFormat {
  static constexpr int kElements = Q8_0::kBlockElements;

 public:
  int sub_elements() const override { return kElements; }
  std::span<const float> levels() const override { return values_of_levels<IntegerLevels<-127, 127>>(); }
  void fit(const float* x, const float*, std::int64_t num_elements, std::byte* row) const override {
    fit_q8_0(x, num_elements / kElements, row);
  }
  void read_grid(const std::byte* row, std::int64_t num_elements, SubGrid* grid) const override {
    for (std::int64_t b = 0; b < num_elements / kElements; ++b) {
      *grid++ = {.scale = half_to_float(block_at<Q8_0::Block>(row, b).scale)};
    }
  }
  void put_codes(const std::uint8_t* indices, std::int64_t num_elements, std::byte* row) const override {
    for (std::int64_t b = 0; b < num_elements / kElements; ++b, indices += kElements) {
      auto block = block_at<Q8_0::Block>(row, b);
      for (int i = 0; i < kElements; ++i) block.codes[i] = static_cast<std::int8_t>(indices[i] - 127);
      std::memcpy(row + b * static_cast<std::int64_t>(sizeof block), &block, sizeof block);
    }
  }
};

}  // namespace

const GridFormat* short_block_format(DType dtype) {
  static const Q8_0Format q8_0;
  static const OneScaleFormat<Q4_0Layout> q4_0;
  static const OneScaleFormat<Q5_0Layout> q5_0;
  static const ScaleMinFormat<Q4_1Layout> q4_1;
  static const ScaleMinFormat<Q5_1Layout> q5_1;
  static const OneScaleFormat<Iq4NlLayout> iq4_nl;
  static const OneScaleFormat<MxFp4Layout> mxfp4;
  static const OneScaleFormat<NvFp4Layout> nvfp4;
  static const OneScaleFormat<Q2_0Layout> q2_0;
  static const OneScaleFormat<Q1_0Layout> q1_0;
  switch (dtype) {
    case DType::kQ8_0: return &q8_0;
    case DType::kQ4_0: return &q4_0;
    case DType::kQ4_1: return &q4_1;
    case DType::kQ5_0: return &q5_0;
    case DType::kQ5_1: return &q5_1;
    case DType::kIQ4_NL: return &iq4_nl;
    case DType::kMXFP4: return &mxfp4;
    case DType::kNVFP4: return &nvfp4;
    case DType::kQ2_0: return &q2_0;
    case DType::kQ1_0: return &q1_0;
    default: return nullptr;
  }
}

}  // namespace kvasir::quant
