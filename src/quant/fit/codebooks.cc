// Formats whose codes stand for four or eight magnitudes together (IQ2, IQ3), with signs of their own. A run's codes and
// scale are searched together: codes over the whole table, scales by tries and by what its codes ask for.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/half.h"
#include "quant/fit/formats.h"
#include "quant/fit/importance.h"
#include "quant/fit/one_scale.h"
#include "quant/formats.h"
#include "quant/grids.h"

namespace kvasir::quant {
namespace {

constexpr int kCodebookElements = 256, kSignElements = 8;  // numbers of a block, and of a byte of signs
constexpr int kMostSubScale = 15;                          // value = unit * (2 sub-scale + 1) * +-magnitude

// --- Layouts: each format's table, and how it stores what was chosen. ---

// A block's choice: a sub-scale for each run, an index for each group, eight signs for each eight numbers.
struct Choice {
  std::array<int, 16> sub_scales{};
  std::array<std::uint16_t, 64> indices{};
  std::array<std::uint8_t, 32> signs{};
};

template <int kRuns>
void put_nibbles(const std::array<int, 16>& sub_scales, std::uint8_t (&bytes)[kRuns / 2]) {
  for (std::size_t i = 0; i < kRuns / 2; ++i) bytes[i] = static_cast<std::uint8_t>(sub_scales[2 * i] | sub_scales[2 * i + 1] << 4);
}

struct Iq2XxsLayout {
  using Format = IQ2_XXS;
  static constexpr int kGroup = 8, kEntries = 256, kSubElements = 32;
  static constexpr bool kHasEvenSigns = true;
  static constexpr float kScaleOfUnit = 8.0f;
  static std::uint16_t entry(int index) { return kIq2XxsGrid[index]; }
  static std::uint8_t magnitude(int code) { return kIq2Magnitudes[code]; }
  static void put(const Choice& choice, Format::Block& block) {
    for (std::size_t sub = 0; sub < 8; ++sub) {
      std::uint32_t word = static_cast<std::uint32_t>(choice.sub_scales[sub]) << 28;
      for (std::size_t i = 0; i < 4; ++i) {
        block.subs[sub].indices[i] = static_cast<std::uint8_t>(choice.indices[4 * sub + i]);
        word |= static_cast<std::uint32_t>(choice.signs[4 * sub + i] & 127) << 7 * i;
      }
      block.subs[sub].signs_and_scale = word;
    }
  }
};
struct Iq2XsLayout {
  using Format = IQ2_XS;
  static constexpr int kGroup = 8, kEntries = 512, kSubElements = 16;
  static constexpr bool kHasEvenSigns = true;
  static constexpr float kScaleOfUnit = 8.0f;
  static std::uint16_t entry(int index) { return kIq2XsGrid[index]; }
  static std::uint8_t magnitude(int code) { return kIq2Magnitudes[code]; }
  static void put(const Choice& choice, Format::Block& block) {
    for (std::size_t i = 0; i < 32; ++i) {
      block.indices_and_signs[i] = static_cast<std::uint16_t>(choice.indices[i] | (choice.signs[i] & 127) << 9);
    }
    put_nibbles<16>(choice.sub_scales, block.sub_scales);
  }
};
struct Iq2SLayout {
  using Format = IQ2_S;
  static constexpr int kGroup = 8, kEntries = 1024, kSubElements = 16;
  static constexpr bool kHasEvenSigns = false;
  static constexpr float kScaleOfUnit = 8.0f;
  static std::uint16_t entry(int index) { return kIq2SGrid[index]; }
  static std::uint8_t magnitude(int code) { return kIq2Magnitudes[code]; }
  static void put(const Choice& choice, Format::Block& block) {
    std::memset(block.high_bits, 0, sizeof block.high_bits);
    for (std::size_t i = 0; i < 32; ++i) {
      block.low_indices[i] = static_cast<std::uint8_t>(choice.indices[i]);
      block.high_bits[i / 4] = static_cast<std::uint8_t>(block.high_bits[i / 4] | (choice.indices[i] >> 8) << 2 * (i % 4));
      block.signs[i] = choice.signs[i];
    }
    put_nibbles<16>(choice.sub_scales, block.sub_scales);
  }
};
struct Iq3XxsLayout {
  using Format = IQ3_XXS;
  static constexpr int kGroup = 4, kEntries = 256, kSubElements = 32;
  static constexpr bool kHasEvenSigns = true;
  static constexpr float kScaleOfUnit = 4.0f;
  static std::uint16_t entry(int index) { return kIq3XxsGrid[index]; }
  static std::uint8_t magnitude(int code) { return kIq3XxsMagnitudes[code]; }
  static void put(const Choice& choice, Format::Block& block) {
    for (std::size_t i = 0; i < 64; ++i) block.indices[i] = static_cast<std::uint8_t>(choice.indices[i]);
    for (std::size_t sub = 0; sub < 8; ++sub) {
      std::uint32_t word = static_cast<std::uint32_t>(choice.sub_scales[sub]) << 28;
      for (std::size_t i = 0; i < 4; ++i) word |= static_cast<std::uint32_t>(choice.signs[4 * sub + i] & 127) << 7 * i;
      block.signs_and_scales[sub] = word;
    }
  }
};
struct Iq3SLayout {
  using Format = IQ3_S;
  static constexpr int kGroup = 4, kEntries = 512, kSubElements = 32;
  static constexpr bool kHasEvenSigns = false;
  static constexpr float kScaleOfUnit = 1.0f;
  static std::uint16_t entry(int index) { return kIq3SGrid[index]; }
  static std::uint8_t magnitude(int code) { return kIq3SMagnitudes[code]; }
  static void put(const Choice& choice, Format::Block& block) {
    std::memset(block.high_bits, 0, sizeof block.high_bits);
    for (std::size_t i = 0; i < 64; ++i) {
      block.low_indices[i] = static_cast<std::uint8_t>(choice.indices[i]);
      block.high_bits[i / 8] = static_cast<std::uint8_t>(block.high_bits[i / 8] | (choice.indices[i] >> 8) << i % 8);
    }
    std::ranges::copy(choice.signs, block.signs);
    put_nibbles<8>(choice.sub_scales, block.sub_scales);
  }
};

// --- The search. ---

// Magnitudes of every entry, and their squares, by element.
template <class Layout>
struct Codebook {
  float magnitudes[Layout::kGroup][Layout::kEntries];
  float squares[Layout::kGroup][Layout::kEntries];
  float most = 0.0f;  // the largest magnitude

  Codebook() {
    constexpr int kBits = 16 / Layout::kGroup;
    for (int index = 0; index < Layout::kEntries; ++index) {
      for (int i = 0; i < Layout::kGroup; ++i) {
        const float magnitude = Layout::magnitude(Layout::entry(index) >> kBits * i & ((1 << kBits) - 1));
        magnitudes[i][index] = magnitude;
        squares[i][index] = magnitude * magnitude;
        most = std::max(most, magnitude);
      }
    }
  }
};
template <class Layout>
const Codebook<Layout>& codebook_of() {
  static const Codebook<Layout> book;
  return book;
}

// The entry whose magnitudes err least at a scale from kGroup targets; the first of several.
template <class Layout>
KVASIR_FIT_INLINE int nearest_entry(const Codebook<Layout>& book, const float* targets, const float* w, float scale) {
  float linear[Layout::kGroup], quadratic[Layout::kGroup];
  for (int i = 0; i < Layout::kGroup; ++i) {
    linear[i] = -2.0f * scale * w[i] * targets[i];
    quadratic[i] = scale * scale * w[i];
  }
  Lanes least = all_lanes(INFINITY), first{};
  for (int index = 0; index < Layout::kEntries; index += kLanes) {
    Lanes cost{};
    for (int i = 0; i < Layout::kGroup; ++i) {
      cost += lanes_at(book.squares[i] + index) * quadratic[i] + lanes_at(book.magnitudes[i] + index) * linear[i];
    }
    const auto is_less = cost < least;
    least = is_less ? cost : least;
    first = is_less ? all_lanes(static_cast<float>(index)) : first;
  }
  int best = 0;
  for (int lane = 1; lane < kLanes; ++lane) {
    if (least[lane] < least[best] || (least[lane] == least[best] && first[lane] < first[best])) best = lane;
  }
  return static_cast<int>(first[best]) + best;
}

// A run's numbers as magnitudes under signs that the format can write: one of eight is negative where their number has to
// be even and is not, the one that matters least.
template <class Layout>
struct Run {
  static constexpr int kElements = Layout::kSubElements, kGroups = kElements / Layout::kGroup;

  float targets[kElements], w[kElements];
  std::uint8_t signs[kElements / kSignElements] = {};
  float largest = 0.0f;
};
template <class Layout>
KVASIR_FIT_INLINE void begin_run(const float* x, const float* w, Run<Layout>& run) {
  for (int i = 0; i < Run<Layout>::kElements; ++i) {
    run.targets[i] = std::fabs(x[i]);
    run.w[i] = w[i];
    run.largest = std::max(run.largest, run.targets[i]);
    if (x[i] < 0.0f) run.signs[i / kSignElements] = static_cast<std::uint8_t>(run.signs[i / kSignElements] | 1 << i % kSignElements);
  }
  if (!Layout::kHasEvenSigns) return;
  for (int first = 0; first < Run<Layout>::kElements; first += kSignElements) {
    std::uint8_t& signs = run.signs[first / kSignElements];
    if (std::popcount(signs) % 2 == 0) continue;
    int least = first;
    for (int i = first + 1; i < first + kSignElements; ++i) {
      if (run.w[i] * run.targets[i] < run.w[least] * run.targets[least]) least = i;
    }
    signs = static_cast<std::uint8_t>(signs ^ 1 << (least - first));
    run.targets[least] = -run.targets[least];
  }
}

// The nearest codes of a run at a scale, and what they are worth.
template <class Layout>
KVASIR_FIT_INLINE ScaleSums choose_codes(const Codebook<Layout>& book, const Run<Layout>& run, float scale,
                                         std::uint16_t* indices) {
  ScaleSums sums;
  for (int group = 0; group < Run<Layout>::kGroups; ++group) {
    const float* const targets = run.targets + group * Layout::kGroup;
    const float* const w = run.w + group * Layout::kGroup;
    const int index = nearest_entry<Layout>(book, targets, w, scale);
    indices[group] = static_cast<std::uint16_t>(index);
    for (int i = 0; i < Layout::kGroup; ++i) {
      const float weighted = w[i] * book.magnitudes[i][index];
      sums.wxq += weighted * targets[i];
      sums.wqq += weighted * book.magnitudes[i][index];
    }
  }
  return sums;
}

struct WantedScale {
  float scale = 0.0f, curvature = 0.0f;  // and how much the error grows with the square of the distance from it
};

// Tries scales that put the largest number at, within and beyond the largest magnitude; then those that codes ask for.
template <class Layout>
KVASIR_FIT_INLINE WantedScale wanted_scale(const Codebook<Layout>& book, const Run<Layout>& run) {
  constexpr int kTries = 6, kRefinements = 2;
  constexpr float kFirst = 0.7f, kStep = 0.13f;
  std::uint16_t indices[Run<Layout>::kGroups];
  if (!(run.largest > 1e-30f)) return {};
  ScaleSums best;
  const auto consider = [&](float scale) __attribute__((always_inline)) {
    const ScaleSums sums = choose_codes<Layout>(book, run, scale, indices);
    if (!(sums.wxq > 0.0f) || !(sums.gain() > best.gain())) return false;
    best = sums;
    return true;
  };
  for (int i = 0; i < kTries; ++i) consider(run.largest / book.most * (kFirst + kStep * static_cast<float>(i)));
  for (int i = 0; i < kRefinements && best.wqq > 0.0f; ++i) {
    if (!consider(best.wxq / best.wqq)) break;
  }
  return best.wqq > 0.0f ? WantedScale{best.wxq / best.wqq, best.wqq} : WantedScale{};
}

int sub_scale_at(float scale, float unit) {
  if (!(unit > 0.0f)) return 0;
  return static_cast<int>(std::clamp(std::nearbyint((scale / unit - 1.0f) * 0.5f), 0.0f, static_cast<float>(kMostSubScale)));
}

// The unit with which the runs' scales are nearest to what they want.
template <int kRuns>
float best_unit(const WantedScale* wanted) {
  constexpr int kTries = 24;
  float largest = 0.0f;
  for (int run = 0; run < kRuns; ++run) largest = std::max(largest, wanted[run].scale);
  float best = 0.0f, least = INFINITY;
  for (int i = 0; i < kTries; ++i) {
    const float unit = largest / (2.0f * kMostSubScale + 1.0f) * (0.9f + 0.02f * static_cast<float>(i));
    float error = 0.0f;
    for (int run = 0; run < kRuns; ++run) {
      const float distance = unit * static_cast<float>(2 * sub_scale_at(wanted[run].scale, unit) + 1) - wanted[run].scale;
      error += wanted[run].curvature * distance * distance;
    }
    if (!(error < least)) continue;
    least = error;
    best = unit;
  }
  return best;
}

template <class Layout>
KVASIR_FIT_CLONES void fit_codebook(const float* x, const float* importance, std::int64_t num_blocks, std::byte* row) {
  using Block = typename Layout::Format::Block;
  constexpr int kRuns = kCodebookElements / Layout::kSubElements, kGroups = Run<Layout>::kGroups;
  const Codebook<Layout>& book = codebook_of<Layout>();
  for (std::int64_t b = 0; b < num_blocks; ++b, x += kCodebookElements, row += sizeof(Block)) {
    float w[kCodebookElements];
    weights_of<kCodebookElements>(importance == nullptr ? nullptr : importance + b * kCodebookElements, w);
    std::array<Run<Layout>, kRuns> runs{};
    WantedScale wanted[kRuns];
    Choice choice;
    for (int run = 0; run < kRuns; ++run) {
      Run<Layout>& each = runs[static_cast<std::size_t>(run)];
      begin_run<Layout>(x + run * Layout::kSubElements, w + run * Layout::kSubElements, each);
      wanted[run] = wanted_scale<Layout>(book, each);
      std::copy_n(each.signs, Layout::kSubElements / kSignElements, choice.signs.data() + run * Layout::kSubElements / kSignElements);
    }
    const float unit = best_unit<kRuns>(wanted);
    // The codes at the stored scales, and the unit that these codes ask for.
    float asked = 0.0f, weight = 0.0f;
    for (int run = 0; run < kRuns; ++run) {
      const int sub_scale = sub_scale_at(wanted[run].scale, unit);
      const auto factor = static_cast<float>(2 * sub_scale + 1);
      choice.sub_scales[static_cast<std::size_t>(run)] = sub_scale;
      const ScaleSums sums = choose_codes<Layout>(book, runs[static_cast<std::size_t>(run)], unit * factor, choice.indices.data() + run * kGroups);
      asked += factor * sums.wxq;
      weight += factor * factor * sums.wqq;
    }
    Block block{};
    block.scale = float_to_half((weight > 0.0f && asked > 0.0f ? asked / weight : 0.0f) * Layout::kScaleOfUnit);
    Layout::put(choice, block);
    std::memcpy(row, &block, sizeof block);
  }
}

template <class Layout>
class CodebookFormat final : public FittedFormat {
 public:
  void fit(const float* x, const float* importance, std::int64_t num_elements, std::byte* row) const override {
    fit_codebook<Layout>(x, importance, num_elements / kCodebookElements, row);
  }
};

}  // namespace

const FittedFormat* codebook_format(DType dtype) {
  static const CodebookFormat<Iq2XxsLayout> iq2_xxs;
  static const CodebookFormat<Iq2XsLayout> iq2_xs;
  static const CodebookFormat<Iq2SLayout> iq2_s;
  static const CodebookFormat<Iq3XxsLayout> iq3_xxs;
  static const CodebookFormat<Iq3SLayout> iq3_s;
  switch (dtype) {
    case DType::kIQ2_XXS: return &iq2_xxs;
    case DType::kIQ2_XS: return &iq2_xs;
    case DType::kIQ2_S: return &iq2_s;
    case DType::kIQ3_XXS: return &iq3_xxs;
    case DType::kIQ3_S: return &iq3_s;
    default: return nullptr;
  }
}

}  // namespace kvasir::quant
