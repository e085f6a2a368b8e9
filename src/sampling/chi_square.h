// Whether counts of what was drawn fit its probabilities, for tests.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>

namespace kvasir::sampling {

// A right rule goes beyond this deviation once in 10,000 tests.
inline constexpr double kMostDeviation = 3.719;

// In sigmas: by Wilson and Hilferty the cube root of chi-square / degrees is nearly normal.
inline double deviation_of(double chi_square, int degrees) {
  if (degrees < 1) return 0.0;
  const double spread = 2.0 / (9.0 * degrees);
  return (std::cbrt(chi_square / degrees) - (1.0 - spread)) / std::sqrt(spread);
}

// Pearson's test. Rare cells are one. Far beyond kMostDeviation where something came that hardly may. Requires: as many
// probabilities as counts.
inline double chi_square_deviation(std::span<const int> counts, std::span<const double> probabilities, int num_draws) {
  constexpr double kLeastWanted = 8.0;  // of a cell
  double chi_square = 0.0, rest_wanted = 0.0, rest_count = 0.0;
  int degrees = -1;
  const auto add_cell = [&](double wanted, double count) {
    chi_square += (count - wanted) * (count - wanted) / wanted;
    ++degrees;
  };
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double wanted = probabilities[i] * num_draws;
    if (wanted >= kLeastWanted) {
      add_cell(wanted, counts[i]);
    } else {
      rest_wanted += wanted;
      rest_count += counts[i];
    }
  }
  if (rest_wanted >= kLeastWanted) {
    add_cell(rest_wanted, rest_count);
  } else if (rest_count > kLeastWanted + 6.0 * std::sqrt(kLeastWanted)) {
    return 1e3;
  }
  return deviation_of(chi_square, degrees);
}

// The same beside as many other draws. Requires: as many cells.
inline double chi_square_deviation(std::span<const int> counts, std::span<const int> others) {
  double chi_square = 0.0, rest = 0.0, other_rest = 0.0;
  int degrees = -1;
  const auto add_cell = [&](double count, double other) {
    chi_square += (count - other) * (count - other) / (count + other);
    ++degrees;
  };
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] + others[i] >= 16) {
      add_cell(counts[i], others[i]);
    } else {
      rest += counts[i];
      other_rest += others[i];
    }
  }
  if (rest + other_rest > 0.0) add_cell(rest, other_rest);
  return deviation_of(chi_square, degrees);
}

}  // namespace kvasir::sampling
