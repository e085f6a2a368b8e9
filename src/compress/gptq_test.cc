#include "compress/gptq.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "compress/upper_factor.h"
#include "quant/fit/fitted_format.h"

namespace kvasir::compress::gptq_test {
namespace {

// Rows whose columns have to do with each other: a few causes, and noise.
std::vector<float> related_rows(std::int64_t count, std::int64_t width, std::uint32_t seed) {
  constexpr std::int64_t kCauses = 12;
  std::mt19937 random(seed), of_mix(99);
  std::normal_distribution<float> normal;
  std::vector<float> mix(static_cast<std::size_t>(kCauses * width));
  for (float& value : mix) value = normal(of_mix);
  std::vector<float> rows;
  for (std::int64_t row = 0; row < count; ++row) {
    float causes[kCauses];
    for (float& cause : causes) cause = normal(random);
    for (std::int64_t i = 0; i < width; ++i) {
      float value = 0.3f * normal(random);
      for (std::int64_t k = 0; k < kCauses; ++k) value += causes[k] * mix[static_cast<std::size_t>(k * width + i)];
      rows.push_back(value * (1.0f + static_cast<float>(i % 7)));
    }
  }
  return rows;
}

std::vector<float> random_floats(std::int64_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = 0.02f * normal(random);
  return values;
}

GramMatrix gram_of(const std::vector<float>& rows, std::int64_t width, ThreadPool& pool) {
  GramMatrix gram(width);
  gram.add(rows, pool);
  return gram;
}

TEST(GramMatrix, SumsProducts) {
  constexpr std::int64_t kWidth = 45, kRows = 700;
  ThreadPool pool(2);
  const std::vector<float> rows = related_rows(kRows, kWidth, 1);
  const GramMatrix gram = gram_of(rows, kWidth, pool);
  EXPECT_EQ(gram.num_rows(), kRows);
  for (std::int64_t i = 0; i < kWidth; ++i) {
    for (std::int64_t j = i; j < kWidth; ++j) {
      double expected = 0.0, of_i = 0.0, of_j = 0.0;
      for (std::int64_t row = 0; row < kRows; ++row) {
        const double a = rows[static_cast<std::size_t>(row * kWidth + i)], b = rows[static_cast<std::size_t>(row * kWidth + j)];
        expected += a * b;
        of_i += a * a;
        of_j += b * b;
      }
      // Numbers of 12 bits, whose roundings have nothing to do with each other.
      ASSERT_NEAR(gram.at(i, j), expected, 1.5e-4 * std::sqrt(of_i * of_j)) << i << " " << j;
    }
  }
}

TEST(GramMatrix, SaysWhereInputsAreNoNumbers) {
  ThreadPool pool(1);
  std::vector<float> rows = related_rows(30, 8, 1);
  rows[8 * 3 + 2] = NAN;
  rows[8 * 7 + 5] = INFINITY;
  const GramMatrix gram = gram_of(rows, 8, pool);
  EXPECT_TRUE(std::isnan(gram.at(2, 2)) && std::isnan(gram.at(0, 5)));
  EXPECT_TRUE(std::isfinite(gram.at(0, 1)));
  EXPECT_FALSE(geometry_of(gram, pool));
}

TEST(UpperFactor, MultipliesToTheMatrix) {
  for (const std::int64_t width : {1, 15, 16, 45, 300}) {
    ThreadPool pool(3);
    const GramMatrix gram = gram_of(related_rows(900, width, 2), width, pool);
    std::vector<double> r;
    for (std::int64_t i = 0; i < width; ++i) {
      for (std::int64_t j = 0; j < width; ++j) r.push_back(gram.at(i, j));
    }
    ASSERT_TRUE(factor_upper(r, width, pool)) << width;
    for (std::int64_t i = 0; i < width; ++i) {
      for (std::int64_t j = i; j < width; ++j) {
        double product = 0.0;
        for (std::int64_t k = j; k < width; ++k) product += r[static_cast<std::size_t>(i * width + k)] * r[static_cast<std::size_t>(j * width + k)];
        ASSERT_NEAR(product, gram.at(i, j), 1e-12 * std::sqrt(gram.at(i, i) * gram.at(j, j))) << width << " " << i << " " << j;
      }
    }
  }
}

TEST(UpperFactor, SaysWhereThereIsNone) {
  ThreadPool pool(1);
  std::vector<double> singular = {1.0, 1.0, 0.0, 1.0}, no_number = {NAN, 0.0, 0.0, 1.0};
  EXPECT_FALSE(factor_upper(singular, 2, pool));
  EXPECT_FALSE(factor_upper(no_number, 2, pool));
}

// The upper triangular U with U^T U = h^-1, as the paper has it: Gauss and Jordan's inverse, then Cholesky.
std::vector<double> inverse_factor(std::vector<double> h, std::int64_t n) {
  std::vector<double> inverse(h.size());
  const auto at = [n](std::vector<double>& matrix, std::int64_t i, std::int64_t j) -> double& { return matrix[static_cast<std::size_t>(i * n + j)]; };
  for (std::int64_t i = 0; i < n; ++i) at(inverse, i, i) = 1.0;
  for (std::int64_t pivot = 0; pivot < n; ++pivot) {
    const double scale = 1.0 / at(h, pivot, pivot);
    for (std::int64_t j = 0; j < n; ++j) at(h, pivot, j) *= scale, at(inverse, pivot, j) *= scale;
    for (std::int64_t i = 0; i < n; ++i) {
      if (i == pivot) continue;
      const double factor = at(h, i, pivot);
      for (std::int64_t j = 0; j < n; ++j) at(h, i, j) -= factor * at(h, pivot, j), at(inverse, i, j) -= factor * at(inverse, pivot, j);
    }
  }
  std::vector<double> u(h.size());
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = i; j < n; ++j) {
      double rest = at(inverse, i, j);
      for (std::int64_t k = 0; k < i; ++k) rest -= at(u, k, i) * at(u, k, j);
      at(u, i, j) = j == i ? std::sqrt(rest) : rest / at(u, i, i);
    }
  }
  return u;
}

// H of a geometry, in its order and with its damping.
std::vector<double> damped(const GramMatrix& gram, const InputGeometry& geometry) {
  std::vector<double> h;
  for (std::int64_t i = 0; i < geometry.width; ++i) {
    for (std::int64_t j = 0; j < geometry.width; ++j) {
      h.push_back(gram.at(geometry.order[static_cast<std::size_t>(i)], geometry.order[static_cast<std::size_t>(j)]) / static_cast<double>(gram.num_rows()) +
                  (i == j ? geometry.added[static_cast<std::size_t>(i)] : 0.0));
    }
  }
  return h;
}

// A row as the paper has it, in float64 and with the whole inverse: after each column the inverse loses it.
std::vector<int> textbook_codes(const InputGeometry& geometry, const std::vector<double>& h_inverse_factor, const quant::GridFormat& format,
                                const std::vector<quant::SubGrid>& grid, const std::vector<float>& x) {
  const std::int64_t n = geometry.width;
  std::vector<double> open(static_cast<std::size_t>(n));
  for (std::int64_t c = 0; c < n; ++c) open[static_cast<std::size_t>(c)] = x[static_cast<std::size_t>(geometry.order[static_cast<std::size_t>(c)])];
  std::vector<int> codes(static_cast<std::size_t>(n));
  for (std::int64_t c = 0; c < n; ++c) {
    const std::int32_t column = geometry.order[static_cast<std::size_t>(c)];
    const quant::SubGrid& of = grid[static_cast<std::size_t>(column / format.sub_elements())];
    int best = 0;
    double least = INFINITY, value = 0.0;
    for (std::size_t level = 0; level < format.levels().size(); ++level) {
      const double of_level = double{of.scale} * format.levels()[level] + of.offset;
      if (std::fabs(of_level - open[static_cast<std::size_t>(c)]) < least) {
        least = std::fabs(of_level - open[static_cast<std::size_t>(c)]);
        best = static_cast<int>(level);
        value = of_level;
      }
    }
    codes[static_cast<std::size_t>(column)] = best;
    const double error = (open[static_cast<std::size_t>(c)] - value) / h_inverse_factor[static_cast<std::size_t>(c * n + c)];
    for (std::int64_t k = c + 1; k < n; ++k) open[static_cast<std::size_t>(k)] -= error * h_inverse_factor[static_cast<std::size_t>(c * n + k)];
  }
  return codes;
}

TEST(Gptq, ChoosesTheCodesOfTheTextbook) {
  constexpr std::int64_t kWidth = 256;
  ThreadPool pool(2);
  const GramMatrix gram = gram_of(related_rows(1500, kWidth, 3), kWidth, pool);
  const auto geometry = geometry_of(gram, pool);
  ASSERT_TRUE(geometry);
  EXPECT_EQ(geometry->damping, 0.01);
  const quant::GridFormat& format = *quant::grid_format(DType::kQ4_0);
  const std::vector<double> factor = inverse_factor(damped(gram, *geometry), kWidth);
  std::size_t num_same = 0, num_all = 0;
  for (std::uint32_t seed = 0; seed < 8; ++seed) {
    const std::vector<float> x = random_floats(kWidth, 10 + seed);
    std::vector<std::byte> row(static_cast<std::size_t>(row_bytes(DType::kQ4_0, kWidth)));
    const GptqResult lost = encode_rows_gptq(DType::kQ4_0, *geometry, x, pool, row);
    EXPECT_LT(lost.loss, lost.nearest_loss);
    std::vector<quant::SubGrid> grid(kWidth / 32);
    format.read_grid(row.data(), kWidth, grid.data());
    const std::vector<int> codes = textbook_codes(*geometry, factor, format, grid, x);
    std::vector<float> values(kWidth);
    info_of(DType::kQ4_0).unpack_row(row.data(), kWidth, values.data());
    for (std::size_t i = 0; i < values.size(); ++i) {
      const quant::SubGrid& of = grid[i / 32];
      num_same += values[i] == of.scale * format.levels()[static_cast<std::size_t>(codes[i])] + of.offset ? 1 : 0;
      ++num_all;
    }
  }
  EXPECT_GT(num_same, num_all - 12);  // a number in the middle of two levels goes either way in float32
}

// tr(E H E^T) as its definition has it.
TEST(Gptq, SaysWhatItsErrorsLose) {
  constexpr std::int64_t kWidth = 96, kRows = 21;
  ThreadPool pool(2);
  const GramMatrix gram = gram_of(related_rows(700, kWidth, 11), kWidth, pool);
  const auto geometry = geometry_of(gram, pool);
  ASSERT_TRUE(geometry);
  const std::vector<float> x = random_floats(kRows * kWidth, 12);
  for (const DType type : {DType::kQ4_1, DType::kIQ4_NL, DType::kQ8_0}) {
    const std::int64_t bytes = row_bytes(type, kWidth);
    std::vector<std::byte> out(static_cast<std::size_t>(kRows * bytes));
    const GptqResult said = encode_rows_gptq(type, *geometry, x, pool, out);
    double lost = 0.0;
    for (std::int64_t row = 0; row < kRows; ++row) {
      std::vector<float> values(kWidth);
      info_of(type).unpack_row(out.data() + row * bytes, kWidth, values.data());
      for (std::int64_t i = 0; i < kWidth; ++i) values[static_cast<std::size_t>(i)] -= x[static_cast<std::size_t>(row * kWidth + i)];
      for (std::int64_t i = 0; i < kWidth; ++i) {
        for (std::int64_t j = 0; j < kWidth; ++j) {
          lost += double{values[static_cast<std::size_t>(i)]} * gram.at(i, j) / static_cast<double>(gram.num_rows()) * values[static_cast<std::size_t>(j)];
        }
      }
    }
    EXPECT_NEAR(said.loss, lost, 1e-4 * lost) << name_of(type);
  }
}

TEST(Gptq, LosesLessThanNearestCodes) {
  constexpr std::int64_t kWidth = 512, kRows = 40;
  ThreadPool pool(2);
  const auto geometry = geometry_of(gram_of(related_rows(3000, kWidth, 4), kWidth, pool), pool);
  ASSERT_TRUE(geometry);
  for (const DType type : {DType::kQ4_0, DType::kQ4_1, DType::kQ5_0, DType::kIQ4_NL, DType::kQ2_K, DType::kQ3_K, DType::kQ4_K, DType::kQ5_K, DType::kQ6_K, DType::kIQ4_XS}) {
    std::vector<std::byte> out(static_cast<std::size_t>(kRows * row_bytes(type, kWidth)));
    const GptqResult lost = encode_rows_gptq(type, *geometry, random_floats(kRows * kWidth, 5), pool, out);
    EXPECT_LT(lost.loss, 0.75 * lost.nearest_loss) << name_of(type);
  }
}

TEST(Gptq, GivesTheSameBytesWhateverTheThreads) {
  constexpr std::int64_t kWidth = 320, kRows = 33;
  std::vector<std::byte> first;
  for (const int num_threads : {1, 2, 5}) {
    ThreadPool pool(num_threads);
    const auto geometry = geometry_of(gram_of(related_rows(1000, kWidth, 6), kWidth, pool), pool);
    std::vector<std::byte> out(static_cast<std::size_t>(kRows * row_bytes(DType::kQ4_1, kWidth)));
    encode_rows_gptq(DType::kQ4_1, *geometry, random_floats(kRows * kWidth, 7), pool, out);
    if (first.empty()) first = out;
    EXPECT_EQ(out, first);
  }
}

TEST(Gptq, TakesInputsThatAreAlwaysZero) {
  constexpr std::int64_t kWidth = 64;
  ThreadPool pool(1);
  std::vector<float> rows = related_rows(500, kWidth, 8);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i % kWidth == 5 || i % kWidth > 40) rows[i] = 0.0f;
  }
  const auto geometry = geometry_of(gram_of(rows, kWidth, pool), pool);
  ASSERT_TRUE(geometry);
  std::vector<std::byte> out(static_cast<std::size_t>(row_bytes(DType::kQ4_0, kWidth)));
  const GptqResult lost = encode_rows_gptq(DType::kQ4_0, *geometry, random_floats(kWidth, 9), pool, out);
  EXPECT_TRUE(std::isfinite(lost.loss));
}

}  // namespace
}  // namespace kvasir::compress::gptq_test
