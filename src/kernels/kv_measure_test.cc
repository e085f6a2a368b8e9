// The measures of a cell agree with the reference, and mean what they say.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "kernels/every_isa.h"
#include "kernels/ref/kernels.h"
#include "kernels/table.h"

namespace kvasir::kernels::kv_measure_test {
namespace {

class KvMeasure : public EveryIsa {};
INSTANTIATE_TEST_SUITE_P(Isa, KvMeasure, testing::ValuesIn(host_tables()), isa_name);

// Keys around `mean` along the first channel; values of length `value`.
std::vector<std::byte> make_cell(KvFormat format, std::int32_t head_dim, float mean, float value,
                                 std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<std::byte> cell(static_cast<std::size_t>(kv::cell_bytes(format, head_dim)));
  std::vector<float> k(static_cast<std::size_t>(head_dim)), v(k.size());
  for (int slot = 0; slot < kTokensPerCell; ++slot) {
    for (float& x : k) x = normal(random);
    k[0] += mean;
    for (float& x : v) x = value / std::sqrt(static_cast<float>(head_dim));
    ref::write_kv({.k = k.data(),
                   .v = v.data(),
                   .head_dim = head_dim,
                   .slot = slot,
                   .format = format,
                   .cell = cell.data()});
  }
  return cell;
}

struct Measured {
  std::vector<float> key_sum;
  float distinctness = 0.0f, ratio = 0.0f, longest_value = 0.0f;
};

Measured measure(const KernelTable& table, const std::vector<std::byte>& cell, KvFormat format,
                 std::int32_t head_dim, std::vector<float> key_sum) {
  Measured measured{.key_sum = std::move(key_sum)};
  table.measure_cell({.head_dim = head_dim,
                      .format = format,
                      .cell = cell.data(),
                      .key_sum = measured.key_sum.data(),
                      .distinctness = &measured.distinctness,
                      .value_key_ratio = &measured.ratio,
                      .longest_value = &measured.longest_value});
  return measured;
}

TEST_P(KvMeasure, AgreesWithTheReference) {
  for (std::int32_t head_dim : {2, 22, 40, 64, 128, 256}) {
    for (KvFormat format : {KvFormat::kF16, KvFormat::kF32, KvFormat::kQ12}) {
      if (!kv::supports(format, head_dim)) continue;
      SCOPED_TRACE(testing::Message() << "head_dim " << head_dim << ", format " << int(format));
      const auto cell = make_cell(format, head_dim, 3.0f, 2.0f, 11);
      std::vector<float> before(static_cast<std::size_t>(head_dim), 0.25f);
      Measured expected{.key_sum = before};
      ref::measure_cell({.head_dim = head_dim,
                         .format = format,
                         .cell = cell.data(),
                         .key_sum = expected.key_sum.data(),
                         .distinctness = &expected.distinctness,
                         .value_key_ratio = &expected.ratio,
                         .longest_value = &expected.longest_value});
      const Measured measured = measure(table(), cell, format, head_dim, before);
      EXPECT_NEAR(measured.distinctness, expected.distinctness, 2e-6f);
      EXPECT_NEAR(measured.ratio, expected.ratio, 2e-6f * expected.ratio);
      EXPECT_NEAR(measured.longest_value, expected.longest_value, 2e-6f * expected.longest_value);
      EXPECT_NEAR(measured.longest_value, 2.0f, 0.01f);
      for (std::size_t d = 0; d < before.size(); ++d) {
        EXPECT_NEAR(measured.key_sum[d], expected.key_sum[d], 1e-5f);
      }
    }
  }
}

TEST_P(KvMeasure, FindsKeysThatAreUnlikeTheOthersDistinct) {
  const std::int32_t head_dim = 64;
  std::vector<float> sum(head_dim);
  float usual = 0.0f;
  for (std::uint32_t block = 0; block < 10; ++block) {
    Measured measured = measure(table(), make_cell(KvFormat::kF16, head_dim, 20.0f, 1.0f, block),
                                KvFormat::kF16, head_dim, sum);
    sum = std::move(measured.key_sum);
    usual = measured.distinctness;
  }
  const Measured other = measure(table(), make_cell(KvFormat::kF16, head_dim, -20.0f, 1.0f, 99),
                                 KvFormat::kF16, head_dim, sum);
  EXPECT_LT(usual, -0.85f);
  EXPECT_GT(other.distinctness, 0.8f);
}

// A block from the prefix cache may have any format: its keys are still known as they were.
TEST_P(KvMeasure, KnowsTheKeysOfEveryFormat) {
  const std::int32_t head_dim = 64;
  const std::vector<std::byte> exact = make_cell(KvFormat::kF16, head_dim, 6.0f, 1.0f, 7);
  const std::vector<float> before(head_dim);
  const Measured expected = measure(table(), exact, KvFormat::kF16, head_dim, before);
  for (const KvFormat format : {KvFormat::kQ8, KvFormat::kK8V4, KvFormat::kK4cV3, KvFormat::kK4V3,
                                KvFormat::kK3V3, KvFormat::kK3V2}) {
    SCOPED_TRACE(testing::Message() << "format " << int(format));
    std::vector<std::byte> cell(static_cast<std::size_t>(kv::cell_bytes(format, head_dim)));
    table().convert_cell({.head_dim = head_dim,
                          .from = KvFormat::kF16,
                          .to = format,
                          .source = exact.data(),
                          .target = cell.data()});
    const Measured measured = measure(table(), cell, format, head_dim, before);
    EXPECT_NEAR(measured.distinctness, expected.distinctness, 0.1f);
    double dot = 0.0, squares = 0.0, other_squares = 0.0;
    for (std::size_t d = 0; d < before.size(); ++d) {
      dot += double{measured.key_sum[d]} * expected.key_sum[d];
      squares += double{measured.key_sum[d]} * measured.key_sum[d];
      other_squares += double{expected.key_sum[d]} * expected.key_sum[d];
    }
    EXPECT_GT(dot / std::sqrt(squares * other_squares), 0.95);
    EXPECT_NEAR(measured.longest_value, 1.0f, 0.5f);
    EXPECT_GT(measured.ratio, 0.0f);
  }
}

TEST_P(KvMeasure, OfKeysThatAreZeroIsZero) {
  const std::vector<std::byte> zeros(static_cast<std::size_t>(kv::cell_bytes(KvFormat::kF16, 64)));
  const Measured measured = measure(table(), zeros, KvFormat::kF16, 64, std::vector<float>(64));
  EXPECT_EQ(measured.distinctness, 0.0f);
  EXPECT_EQ(measured.ratio, 0.0f);
}

}  // namespace
}  // namespace kvasir::kernels::kv_measure_test
