#include "kv/cells/key_bases.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/checked_math.h"
#include "kv/cells/cell.h"

namespace kvasir::kv {
namespace {

// The best equal step of b bits for normal numbers of deviation 1, and the squared error that is left (Max, "Quantizing for
// minimum distortion", 1960).
constexpr double kSteps[kMaxComponentBits + 1] = {0.0, 1.596, 0.9957, 0.586, 0.3352, 0.1881, 0.1041};
constexpr double kErrors[kMaxComponentBits + 1] = {1.0, 0.3634, 0.1188, 0.03744, 0.01154, 0.00349, 0.00104};

constexpr std::int32_t kColumnsPerVector = 16;
// The greatest code of a query's matrix, times head_dim: with 15 bits of a query a sum stays within 31 bits.
constexpr double kMostProducts = 0x1p31 / 0x1p14 - 1.0;

std::int32_t stride_of(const KeyStatistics& statistics) {
  return ceil_div(static_cast<std::int32_t>(statistics.bits.size()), kColumnsPerVector) * kColumnsPerVector;
}

// The numbers of one cell's basis.
std::int64_t numbers_of(std::int32_t stride, std::int32_t head_dim) {
  return std::int64_t{2} * head_dim * stride + head_dim + std::int64_t{3} * stride;
}

bool are_finite(std::span<const float> numbers) {
  return std::ranges::all_of(numbers, [](float x) { return std::isfinite(x); });
}

}  // namespace

std::vector<std::int8_t> component_bits(std::span<const float> deviations) {
  struct Gain {
    double error;  // that one more bit takes away
    std::size_t component;
    int bit;
  };
  std::vector<Gain> gains;
  for (std::size_t c = 0; c < deviations.size(); ++c) {
    const double variance = double{deviations[c]} * deviations[c];
    for (int b = 0; b < kMaxComponentBits; ++b) gains.push_back({variance * (kErrors[b] - kErrors[b + 1]), c, b});
  }
  // Among equals a component's lower bits first, and the earlier component.
  std::ranges::stable_sort(gains, [](const Gain& a, const Gain& b) {
    return a.error != b.error ? a.error > b.error : a.bit != b.bit ? a.bit < b.bit : a.component < b.component;
  });
  std::vector<std::int8_t> bits(deviations.size(), 0);
  const std::size_t num_planes = kKeyPlanesPerChannel * deviations.size();
  for (std::size_t i = 0; i < std::min(num_planes, gains.size()); ++i) ++bits[gains[i].component];
  while (!bits.empty() && bits.back() == 0) bits.pop_back();
  return bits;
}

bool KeyBases::are_whole(const KeyStatistics& statistics, std::int32_t head_dim) {
  const std::size_t width = static_cast<std::size_t>(head_dim), count = statistics.bits.size();
  if (count == 0 || count > width || statistics.mean.size() != width || statistics.directions.size() != count * width ||
      statistics.deviations.size() != count) {
    return false;
  }
  int sum = 0;
  for (const std::int8_t bits : statistics.bits) sum += bits;
  return sum == kKeyPlanesPerChannel * head_dim && statistics.bits.front() <= kMaxComponentBits && statistics.bits.back() >= 1 &&
         std::ranges::is_sorted(statistics.bits, std::ranges::greater()) && are_finite(statistics.mean) &&
         are_finite(statistics.directions) && are_finite(statistics.deviations) &&
         std::ranges::all_of(statistics.deviations, [](float x) { return x > 0.0f; });
}

KeyBases::KeyBases(std::span<const KeyStatistics> cells, std::int32_t head_dim, const KeyTurning& turning, std::int32_t num_blocks) {
  const auto half = std::ssize(turning.inverse_frequencies);
  std::int64_t num_numbers = 2 * half * num_blocks, num_codes = 0;
  for (const KeyStatistics& statistics : cells) {
    CHECK(are_whole(statistics, head_dim));
    num_numbers += numbers_of(stride_of(statistics), head_dim);
    num_codes += std::int64_t{head_dim} * stride_of(statistics);
  }
  numbers_.resize(static_cast<std::size_t>(num_numbers));
  codes_.resize(static_cast<std::size_t>(num_codes));
  float* next = numbers_.data();
  std::int16_t* next_codes = codes_.data();
  for (std::int32_t block = 0; block < num_blocks; ++block) {
    for (const double frequency : turning.inverse_frequencies) {
      const double angle = frequency * block * kTokensPerBlock;
      *next = static_cast<float>(std::cos(angle));
      next[half] = static_cast<float>(-std::sin(angle));
      ++next;
    }
    next += half;
  }
  for (const KeyStatistics& statistics : cells) {
    KeyBasis& basis = bases_.emplace_back();
    basis.num_components = static_cast<std::int32_t>(statistics.bits.size());
    basis.stride = stride_of(statistics);
    basis.angles = numbers_.data();
    basis.rotary_dim = static_cast<std::int32_t>(2 * half);
    basis.turns_halves = turning.turns_halves;
    add_columns(statistics, head_dim, next, next_codes, basis);
    next += numbers_of(basis.stride, head_dim);
    next_codes += std::int64_t{head_dim} * basis.stride;
  }
}

void KeyBases::add_columns(const KeyStatistics& statistics, std::int32_t head_dim, float* numbers, std::int16_t* codes, KeyBasis& basis) {
  const auto width = static_cast<std::size_t>(head_dim), stride = static_cast<std::size_t>(basis.stride);
  float* const of_queries = numbers;
  float* const of_keys = of_queries + width * stride;
  float* const constants = of_keys + width * stride;
  float* const offsets = constants + width;
  float* const greatest = offsets + stride;
  float* const units = greatest + stride;
  const double most_code = std::floor(kMostProducts / head_dim);
  std::vector<double> constant(statistics.mean.begin(), statistics.mean.end());
  for (std::size_t c = 0; c < statistics.bits.size(); ++c) {
    const float* const direction = statistics.directions.data() + c * width;
    const double half = std::ldexp(1.0, statistics.bits[c] - 1), step = kSteps[statistics.bits[c]] * statistics.deviations[c];
    const double longest = std::abs(*std::max_element(direction, direction + width, [](float a, float b) { return std::abs(a) < std::abs(b); }));
    const double unit = longest > 0.0 ? longest * step / most_code : 1.0;
    double of_mean = 0.0;
    for (std::size_t d = 0; d < width; ++d) {
      const double code = std::nearbyint(direction[d] * step / unit);
      codes[((c / kColumnsPerVector * width / 2 + d / 2) * kColumnsPerVector + c % kColumnsPerVector) * 2 + d % 2] = static_cast<std::int16_t>(code);
      of_queries[d * stride + c] = static_cast<float>(code * unit);
      of_keys[d * stride + c] = static_cast<float>(direction[d] / step);
      constant[d] += code * unit * (0.5 - half);
      of_mean += double{direction[d]} * statistics.mean[d];
    }
    units[c] = static_cast<float>(unit);
    offsets[c] = static_cast<float>(half - 0.5 - of_mean / step);
    greatest[c] = static_cast<float>(2.0 * half - 1.0);
    for (int b = 0; b < statistics.bits[c]; ++b) ++basis.num_with_bit[b];
  }
  std::ranges::copy(constant, constants);
  basis.of_queries = of_queries;
  basis.of_keys = of_keys;
  basis.constants = constants;
  basis.key_offsets = offsets;
  basis.greatest_numbers = greatest;
  basis.query_units = units;
  basis.query_codes = codes;
}

}  // namespace kvasir::kv
