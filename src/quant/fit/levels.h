// The numbers that a code stands for, before its scale: neighbouring integers, or a table.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "quant/fit/lanes.h"
#include "quant/nibble_tables.h"

namespace kvasir::quant {

// kLow, kLow + 1, ... kHigh. The index of a level is its distance from kLow.
template <int kLow, int kHigh>
struct IntegerLevels {
  static constexpr int kCount = kHigh - kLow + 1;
  static constexpr float kLowest = kLow, kHighest = kHigh;
  static constexpr bool kIsSymmetric = -kLow == kHigh;

  KVASIR_FIT_INLINE static Lanes nearest(Lanes v) { return rounded_into(v, kLow, kHigh); }
  KVASIR_FIT_INLINE static void put_indices(Lanes v, std::uint8_t* indices) { put_bytes(nearest(v) - kLowest, indices); }
  static float level(int index) { return static_cast<float>(kLow + index); }
};

// The levels of a table, ascending. Between two the nearer one is taken, and the lower one in the middle.
template <class Table>
struct TableLevels {
  static constexpr int kCount = static_cast<int>(Table::kLevels.size());
  static constexpr float kLowest = Table::kLevels.front(), kHighest = Table::kLevels.back();
  static constexpr bool kIsSymmetric = -kLowest == kHighest;

  static constexpr float middle(int index) {
    const auto at = static_cast<std::size_t>(index);
    return 0.5f * (Table::kLevels[at] + Table::kLevels[at + 1]);
  }
  KVASIR_FIT_INLINE static Lanes nearest(Lanes v) {
    Lanes level = all_lanes(kLowest);
    for (int i = 0; i + 1 < kCount; ++i) {
      level = v > all_lanes(middle(i)) ? all_lanes(Table::kLevels[static_cast<std::size_t>(i) + 1]) : level;
    }
    return level;
  }
  KVASIR_FIT_INLINE static void put_indices(Lanes v, std::uint8_t* indices) {
    Lanes index{};
    for (int i = 0; i + 1 < kCount; ++i) index = v > all_lanes(middle(i)) ? all_lanes(static_cast<float>(i + 1)) : index;
    put_bytes(index, indices);
  }
  static float level(int index) { return Table::kLevels[static_cast<std::size_t>(index)]; }
};

// The 16 integers of IQ4_NL and IQ4_XS.
struct Iq4Table {
  static constexpr std::array<float, 16> kLevels = [] {
    std::array<float, 16> levels{};
    for (std::size_t i = 0; i < levels.size(); ++i) levels[i] = static_cast<float>(kIq4Codes[i] - kIq4Zero);
    return levels;
  }();
};

// All levels, ascending.
template <class Levels>
const std::array<float, Levels::kCount>& values_of_levels() {
  static const auto values = [] {
    std::array<float, Levels::kCount> all{};
    for (int i = 0; i < Levels::kCount; ++i) all[static_cast<std::size_t>(i)] = Levels::level(i);
    return all;
  }();
  return values;
}

}  // namespace kvasir::quant
