#include "kernels/random_key_basis.h"

#include <cmath>
#include <random>

#include "kernels/portable_normal.h"

namespace kvasir::kernels {
namespace {

// Rows of length 1, at right angles to each other (Gram and Schmidt).
std::vector<std::vector<double>> random_directions(std::int32_t head_dim, std::mt19937& random) {
  const PortableNormal normal;
  std::vector<std::vector<double>> rows;
  for (std::int32_t i = 0; i < head_dim; ++i) {
    std::vector<double> row(static_cast<std::size_t>(head_dim));
    for (double& x : row) x = normal(random);
    for (int again = 0; again < 2; ++again) {
      for (const std::vector<double>& other : rows) {
        double dot = 0.0;
        for (std::size_t d = 0; d < row.size(); ++d) dot += row[d] * other[d];
        for (std::size_t d = 0; d < row.size(); ++d) row[d] -= dot * other[d];
      }
    }
    double square = 0.0;
    for (const double x : row) square += x * x;
    for (double& x : row) x /= std::sqrt(square);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

RandomKeyBasis::RandomKeyBasis(std::int32_t head_dim, std::int32_t num_blocks, float deviation, std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto directions = random_directions(head_dim, random);
  const std::int32_t quarter = head_dim / 4, count = 3 * quarter, stride = (count + 15) / 16 * 16;
  of_queries_.resize(static_cast<std::size_t>(head_dim) * stride);
  of_keys_.resize(of_queries_.size());
  codes_.resize(of_queries_.size());
  constants_.resize(static_cast<std::size_t>(head_dim));
  units_.resize(static_cast<std::size_t>(stride));
  key_offsets_.resize(static_cast<std::size_t>(stride));
  greatest_.resize(static_cast<std::size_t>(stride));
  for (std::int32_t c = 0; c < count; ++c) {
    const int bits = c < quarter ? 5 : c < 2 * quarter ? 2 : 1;
    const double step = deviation * 4.0 / (1 << bits), half = 0.5 * (1 << bits), unit = step / 200.0;
    units_[c] = static_cast<float>(unit);
    for (std::int32_t d = 0; d < head_dim; ++d) {
      const std::size_t row = static_cast<std::size_t>(d) * static_cast<std::size_t>(stride);
      const double code = std::nearbyint(directions[c][d] * step / unit);
      codes_[((c / 16 * head_dim / 2 + d / 2) * 16 + c % 16) * 2 + d % 2] = static_cast<std::int16_t>(code);
      of_queries_[row + c] = static_cast<float>(code * unit);
      of_keys_[row + c] = static_cast<float>(directions[c][d] / step);
      constants_[d] += static_cast<float>(code * unit * (0.5 - half));
    }
    key_offsets_[c] = static_cast<float>(half - 0.5);
    greatest_[c] = static_cast<float>(2.0 * half - 1.0);
    for (int b = 0; b < bits; ++b) ++basis_.num_with_bit[b];
  }
  const std::int32_t half_dim = head_dim / 2;
  for (std::int32_t block = 0; block < num_blocks; ++block) {
    for (const bool is_sine : {false, true}) {
      for (std::int32_t i = 0; i < half_dim; ++i) {
        const double angle = 16.0 * block * std::pow(10000.0, -static_cast<double>(i) / half_dim);
        angles_.push_back(static_cast<float>(is_sine ? -std::sin(angle) : std::cos(angle)));
      }
    }
  }
  basis_.num_components = count;
  basis_.stride = stride;
  basis_.of_queries = of_queries_.data();
  basis_.constants = constants_.data();
  basis_.query_codes = codes_.data();
  basis_.query_units = units_.data();
  basis_.of_keys = of_keys_.data();
  basis_.key_offsets = key_offsets_.data();
  basis_.greatest_numbers = greatest_.data();
  basis_.angles = angles_.data();
  basis_.rotary_dim = head_dim;
  basis_.turns_halves = seed % 2 == 1;
}

}  // namespace kvasir::kernels
