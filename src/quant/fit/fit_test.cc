#include "quant/fit/fitted_format.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/half.h"
#include "quant/encode/encode.h"

namespace kvasir::quant::fit_test {
namespace {

constexpr DType kAll[] = {DType::kQ8_0, DType::kQ4_0, DType::kQ4_1,  DType::kQ5_0,  DType::kQ5_1,  DType::kIQ4_NL,
                          DType::kMXFP4, DType::kNVFP4, DType::kQ2_0, DType::kQ1_0,  DType::kQ2_K,  DType::kQ3_K,
                          DType::kQ4_K, DType::kQ5_K, DType::kQ6_K,  DType::kIQ4_XS, DType::kTQ1_0, DType::kTQ2_0};

std::vector<float> random_floats(std::size_t count, std::uint32_t seed, float scale = 0.02f) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = scale * normal(random);
  return values;
}

std::vector<float> random_importance(std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::lognormal_distribution<float> spread(0.0f, 1.5f);
  std::vector<float> values(count);
  for (float& value : values) value = spread(random);
  return values;
}

std::vector<std::byte> fit(DType dtype, const std::vector<float>& x, const float* importance = nullptr) {
  std::vector<std::byte> row(static_cast<std::size_t>(row_bytes(dtype, std::ssize(x))));
  fitted_format(dtype)->fit(x.data(), importance, std::ssize(x), row.data());
  return row;
}

std::vector<float> unpack(DType dtype, const std::vector<std::byte>& row, std::size_t count) {
  std::vector<float> values(count);
  info_of(dtype).unpack_row(row.data(), static_cast<std::int64_t>(count), values.data());
  return values;
}

double error_of(const std::vector<float>& x, const std::vector<float>& y, const float* w = nullptr) {
  double sum = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += (w == nullptr ? 1.0 : w[i]) * std::pow(double{x[i]} - y[i], 2);
  return sum;
}

constexpr DType kCodebooks[] = {DType::kIQ2_XXS, DType::kIQ2_XS, DType::kIQ2_S, DType::kIQ3_XXS, DType::kIQ3_S};

class Fit : public testing::TestWithParam<DType> {};
class FitToGrid : public Fit {};  // codes are of one number each
const auto kName = [](const auto& each) { return std::string(name_of(each.param)); };
INSTANTIATE_TEST_SUITE_P(Formats, Fit, testing::ValuesIn(kAll), kName);
INSTANTIATE_TEST_SUITE_P(Codebooks, Fit, testing::ValuesIn(kCodebooks), kName);
INSTANTIATE_TEST_SUITE_P(Formats, FitToGrid, testing::ValuesIn(kAll), kName);

// The decoder's numbers are the grid's: value = scale * level + offset, with the codes that were put.
TEST_P(FitToGrid, GridAndCodesAreWhatTheDecoderReads) {
  const GridFormat& format = *grid_format(GetParam());
  constexpr std::size_t kCount = 256 * 8;
  const std::vector<float> x = random_floats(kCount, 1);
  std::vector<std::byte> row = fit(GetParam(), x);
  std::vector<SubGrid> grid(kCount / static_cast<std::size_t>(format.sub_elements()));
  format.read_grid(row.data(), kCount, grid.data());
  std::mt19937 random(2);
  std::vector<std::uint8_t> codes(kCount);
  for (auto& code : codes) code = static_cast<std::uint8_t>(random() % format.levels().size());
  format.put_codes(codes.data(), kCount, row.data());
  const std::vector<float> values = unpack(GetParam(), row, kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    const SubGrid& of = grid[i / static_cast<std::size_t>(format.sub_elements())];
    ASSERT_EQ(values[i], of.scale * format.levels()[codes[i]] + of.offset) << i;
  }
}

TEST_P(FitToGrid, ChoosesTheNearestLevelOfItsScales) {
  if (GetParam() == DType::kQ8_0) return;  // rounds before its scale is rounded, as the reference does
  const GridFormat& format = *grid_format(GetParam());
  constexpr std::size_t kCount = 256 * 8;
  const std::vector<float> x = random_floats(kCount, 3);
  const std::vector<std::byte> row = fit(GetParam(), x);
  std::vector<SubGrid> grid(kCount / static_cast<std::size_t>(format.sub_elements()));
  format.read_grid(row.data(), kCount, grid.data());
  const std::vector<float> values = unpack(GetParam(), row, kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    const SubGrid& of = grid[i / static_cast<std::size_t>(format.sub_elements())];
    float nearest = INFINITY;
    for (const float level : format.levels()) nearest = std::min(nearest, std::fabs(of.scale * level + of.offset - x[i]));
    EXPECT_LE(std::fabs(values[i] - x[i]), nearest * 1.0001f + 1e-9f) << i;
  }
}

TEST_P(Fit, ImportanceLowersTheErrorThatItWeights) {
  if (GetParam() == DType::kQ8_0) return;  // it rounds as the reference, whatever counts
  const std::vector<float> x = random_floats(256 * 64, 4), w = random_importance(x.size(), 5);
  const double without = error_of(x, unpack(GetParam(), fit(GetParam(), x), x.size()), w.data());
  const double with = error_of(x, unpack(GetParam(), fit(GetParam(), x, w.data()), x.size()), w.data());
  EXPECT_LT(with, without);
}

TEST_P(Fit, TakesWhatIsOdd) {
  for (const float value : {0.0f, 1.0f, -3.0f, 1e-30f, 1e-7f}) {
    const std::vector<float> x(256, value);
    const std::vector<std::byte> row = fit(GetParam(), x);
    EXPECT_TRUE(info_of(GetParam()).is_finite_row(row.data(), 256)) << value;
  }
  std::vector<float> outlier(256, 1e-4f);
  outlier[17] = 100.0f;
  EXPECT_TRUE(info_of(GetParam()).is_finite_row(fit(GetParam(), outlier).data(), 256));
  const std::vector<float> x = random_floats(256, 6), zeros(256, 0.0f);
  EXPECT_EQ(fit(GetParam(), x, zeros.data()), fit(GetParam(), x));  // a block without importance counts all alike
}

// The weighted squared error of a scale's nearest codes.
double error_at(const std::vector<float>& x, const std::vector<float>& w, const GridFormat& format, double scale) {
  double error = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    double least = INFINITY;
    for (const float level : format.levels()) least = std::min(least, std::pow(scale * level - x[i], 2));
    error += w[i] * least;
  }
  return error;
}

// Beside the best of some thousand scales.
TEST(FitOneScale, IsNearTheBestThereIs) {
  for (const DType dtype : {DType::kQ4_0, DType::kQ5_0, DType::kIQ4_NL}) {
    const GridFormat& format = *grid_format(dtype);
    double found = 0.0, best = 0.0;
    for (std::uint32_t seed = 0; seed < 40; ++seed) {
      const std::vector<float> x = random_floats(32, 100 + seed), w = random_importance(32, 200 + seed);
      found += error_of(x, unpack(dtype, fit(dtype, x, w.data()), 32), w.data());
      float largest = 0.0f;
      for (const float value : x) largest = std::max(largest, std::fabs(value));
      const double outermost = std::max(-format.levels().front(), format.levels().back());
      double least = INFINITY;
      for (int i = 1; i <= 4000; ++i) {
        const double scale = largest / outermost * (0.6 + 1.4 * i / 4000.0);
        least = std::min({least, error_at(x, w, format, scale), error_at(x, w, format, -scale)});
      }
      best += least;
    }
    EXPECT_LT(found, 1.02 * best) << name_of(dtype);
  }
}

TEST(FitOneScale, ErrsLessThanTheReferenceRounding) {
  const std::vector<float> x = random_floats(32 * 500, 7);
  std::vector<std::byte> reference(static_cast<std::size_t>(row_bytes(DType::kQ4_0, std::ssize(x))));
  encode_q4_0(x.data(), std::ssize(x), reference.data());
  const double of_reference = error_of(x, unpack(DType::kQ4_0, reference, x.size()));
  EXPECT_LT(error_of(x, unpack(DType::kQ4_0, fit(DType::kQ4_0, x), x.size())), 0.9 * of_reference);
}

// A file in Q4_1 that is widened and made Q5_1 or Q4_1 again keeps its numbers.
TEST(Fit, FindsTheLevelsOfNumbersThatHaveSome) {
  const std::vector<float> normal = random_floats(32 * 500, 9);
  const std::vector<float> levels = unpack(DType::kQ4_1, fit(DType::kQ4_1, normal), normal.size());
  const double squares = error_of(levels, std::vector<float>(levels.size()));
  for (const DType dtype : {DType::kQ4_1, DType::kQ5_1}) {
    EXPECT_LT(error_of(levels, unpack(dtype, fit(dtype, levels), levels.size())), 3e-4 * squares) << name_of(dtype);
  }
}

// Of normally distributed numbers, relative to their squares; finer types err less.
TEST(Fit, ErrorsFallWithTheBits) {
  const std::vector<float> x = random_floats(256 * 128, 8);
  const auto relative = [&](DType dtype) { return error_of(x, unpack(dtype, fit(dtype, x), x.size())) / error_of(x, std::vector<float>(x.size())); };
  EXPECT_LT(relative(DType::kQ8_0), 4e-5);
  EXPECT_LT(relative(DType::kQ6_K), 5.5e-4);
  EXPECT_LT(relative(DType::kQ5_K), 2.0e-3);
  EXPECT_LT(relative(DType::kQ5_1), 1.8e-3);
  EXPECT_LT(relative(DType::kQ5_0), 2.2e-3);
  EXPECT_LT(relative(DType::kQ4_K), 7.5e-3);
  EXPECT_LT(relative(DType::kQ4_1), 7.5e-3);
  EXPECT_LT(relative(DType::kIQ4_XS), 7.5e-3);
  EXPECT_LT(relative(DType::kQ4_0), 9e-3);
  EXPECT_LT(relative(DType::kQ3_K), 3.5e-2);
  EXPECT_LT(relative(DType::kQ2_K), 1.1e-1);
}

TEST(Fit, KnowsNoEncoderOfTypesThatAreOnlyRead) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) EXPECT_EQ(fitted_format(dtype), nullptr);
}

// Bit for bit as the reference's definition, halves included.
TEST(Q8_0Format, RoundsHalvesAwayFromZero) {
  std::vector<float> x;
  for (int i = 0; i < 32; ++i) x.push_back(static_cast<float>(i - 16) * 0.5f + (i == 0 ? -119.0f : 0.0f));
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  for (int i = 0; i < 32 * 400; ++i) x.push_back(normal(random) * std::exp2(static_cast<float>(i / 32 % 40 - 20)));
  x.insert(x.end(), 32, 0.0f);
  x[40] = std::nextafter(0.5f, 0.0f);
  std::vector<std::byte> row(static_cast<std::size_t>(row_bytes(DType::kQ8_0, std::ssize(x))));
  fitted_format(DType::kQ8_0)->fit(x.data(), nullptr, std::ssize(x), row.data());
  for (std::size_t b = 0; b < x.size() / 32; ++b) {
    float largest = 0.0f;
    for (std::size_t i = 0; i < 32; ++i) largest = std::max(largest, std::fabs(x[32 * b + i]));
    const float scale = largest / 127.0f, inverse = scale > 0.0f ? 1.0f / scale : 0.0f;
    const auto* block = reinterpret_cast<const std::uint8_t*>(row.data()) + 34 * b;
    EXPECT_EQ(block[0] | block[1] << 8, float_to_half(scale)) << b;
    for (std::size_t i = 0; i < 32; ++i) {
      EXPECT_EQ(static_cast<std::int8_t>(block[2 + i]), static_cast<std::int8_t>(std::round(x[32 * b + i] * inverse))) << b << " " << i;
    }
  }
}

TEST(F16Format, UnpacksEveryNumber) {
  std::vector<std::uint16_t> halves(65536);
  for (std::size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<std::uint16_t>(i);
  std::vector<float> values(halves.size());
  info_of(DType::kF16).unpack_row(halves.data(), std::ssize(halves), values.data());
  for (std::size_t i = 0; i < halves.size(); ++i) {
    EXPECT_EQ(std::bit_cast<std::uint32_t>(values[i]), std::bit_cast<std::uint32_t>(half_to_float(halves[i]))) << i;
  }
}

}  // namespace
}  // namespace kvasir::quant::fit_test
