#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <utility>

#include "kernels/activation.h"
#include "kernels/every_isa.h"

namespace kvasir::kernels::quantize_test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

class QuantizeRow : public EveryIsa {
 protected:
  struct Row {
    bool finite = false;
    std::vector<ActivationBlock> blocks = {};
    std::vector<OutlierCodes> outliers = {};
    std::vector<int> outlier_groups = {};

    int code(std::size_t i) const { return blocks[i / 32].q[i % 32] + 128 * outliers[i / 32].q[i % 32]; }
    double value(std::size_t i) const { return double{blocks[i / 32].scale} * code(i); }
  };
  Row run(const std::vector<float>& x) const { return run(x, table()); }
  // As the last of three tokens: the others' columns stay as they were.
  static Row run(const std::vector<float>& x, const KernelTable& isa) {
    constexpr std::int32_t kToken = 2, kNumTokens = 3;
    const auto k = static_cast<std::int64_t>(x.size());
    std::vector<std::uint8_t> storage(static_cast<std::size_t>(isa.activation_bytes(k, kNumTokens)), 0xcd);
    const bool finite = isa.quantize_row(x.data(), k, kToken, kNumTokens, storage.data());
    const ConstActivationTile tile = activation_tile(std::as_const(storage).data(), k, 0, kNumTokens);
    Row result{.finite = finite};
    for (std::int64_t b = 0; b < k / 32; ++b) {
      const std::int64_t at = b * kNumTokens + kToken;
      result.blocks.push_back(tile.blocks[at]);
      result.outliers.push_back(tile.outliers[at]);
      result.outlier_groups.push_back(tile.outlier_groups[b * kTokensPerActivationTile + kToken]);
      EXPECT_EQ(static_cast<std::uint8_t>(tile.blocks[at - 1].q[0]), 0xcd);
      EXPECT_EQ(static_cast<std::uint8_t>(tile.outliers[at - 1].q[0]), 0xcd);
      EXPECT_EQ(tile.outlier_groups[b * kTokensPerActivationTile + kToken - 1], 0xcd);
      for (std::int32_t t = kNumTokens; t < kTokensPerActivationTile; ++t) {
        EXPECT_EQ(tile.outlier_groups[b * kTokensPerActivationTile + t], 0);
      }
    }
    return result;
  }
};
INSTANTIATE_TEST_SUITE_P(Isa, QuantizeRow, testing::ValuesIn(host_tables()), isa_name);

std::vector<float> random_row(std::int64_t k, float deviation, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, 1.0f);
  std::vector<float> x(static_cast<std::size_t>(k));
  for (float& value : x) value = deviation * normal(random);
  return x;
}

TEST_P(QuantizeRow, GivesTheBitsOfTheScalarReference) {
  for (const std::int64_t k : {32, 64, 96, 576, 1536, 2048}) {
    for (const float deviation : {1.0f, 1e-26f, 1e-37f, 1e-41f, 1e28f}) {
      SCOPED_TRACE("k " + std::to_string(k) + " deviation " + std::to_string(deviation));
      std::vector<float> x = random_row(k, deviation, static_cast<std::uint32_t>(k));
      for (std::size_t i = 5; i < x.size(); i += 211) x[i] *= 30.0f;  // outlier channels
      const Row row = run(x), expected = run(x, *find_table("ref"));
      EXPECT_TRUE(row.finite);
      ASSERT_EQ(std::memcmp(row.blocks.data(), expected.blocks.data(), row.blocks.size() * 48), 0);
      ASSERT_EQ(row.outlier_groups, expected.outlier_groups);
      ASSERT_EQ(std::memcmp(row.outliers.data(), expected.outliers.data(), row.outliers.size() * 32), 0);
    }
  }
}

TEST_P(QuantizeRow, W8a8GivesTheBitsOfTheScalarReference) {
  for (const std::int64_t k : {32, 96, 256, 288, 576, 2048}) {
    for (const float deviation : {1.0f, 1e-26f, 1e28f}) {
      SCOPED_TRACE("k " + std::to_string(k) + " deviation " + std::to_string(deviation));
      std::vector<float> x = random_row(k, deviation, static_cast<std::uint32_t>(k));
      for (std::size_t i = 5; i < x.size(); i += 411) x[i] *= 30.0f;
      std::vector<std::vector<std::uint8_t>> results;
      for (const KernelTable* isa : {&table(), find_table("ref")}) {
        results.emplace_back(static_cast<std::size_t>(isa->activation_bytes(k, 3)), 0xcd);
        EXPECT_TRUE(isa->quantize_row_w8a8(x.data(), k, 1, 3, results.back().data()));
      }
      EXPECT_EQ(results[0], results[1]);
      x[static_cast<std::size_t>(k) - 1] = kNan;
      EXPECT_FALSE(table().quantize_row_w8a8(x.data(), k, 1, 3, results[0].data()));
    }
  }
}

TEST_P(QuantizeRow, RoundsToTheNearestStepAndSumsWhatItWrote) {
  std::vector<float> x = random_row(640, 3.0f, 11);
  for (const std::size_t at : {3u, 70u, 71u, 639u}) x[at] *= -40.0f;
  const Row row = run(x);
  for (std::size_t b = 0; b < row.blocks.size(); ++b) {
    const ActivationBlock& block = row.blocks[b];
    int sum = 0, sum_high = 0, groups_of_4 = 0;
    for (std::size_t i = 0; i < 32; ++i) {
      EXPECT_LE(std::abs(row.value(b * 32 + i) - x[b * 32 + i]), 0.50001 * block.scale);
      EXPECT_LE(std::abs(block.q[i]), 127);
      sum += row.code(b * 32 + i);
      if (i >= 16) sum_high += row.code(b * 32 + i);
      if (row.outliers[b].q[i] != 0) groups_of_4 |= 1 << i / 4;
    }
    EXPECT_EQ(row.outlier_groups[b], groups_of_4);
    EXPECT_EQ(block.offset, -128 * sum);
    EXPECT_EQ(block.offset_high, -128 * sum_high);
    EXPECT_EQ(block.scaled_sum, block.scale * static_cast<float>(sum));
  }
}

TEST_P(QuantizeRow, TakesTheScaleFromTheGroupsOf4WithoutOutliers) {
  std::vector<float> x(2048, 1.0f);
  for (const std::size_t at : {3u, 700u, 701u, 704u, 2047u}) x[at] = -40.0f;
  x[1] = 20.0f;  // beside an outlier
  x[695] = 1.2f;
  const Row row = run(x);
  for (std::size_t b = 0; b < row.blocks.size(); ++b) {
    const int groups_of_4 = b == 0 ? 0x01 : b == 21 ? 0x80 : b == 22 ? 0x01 : b == 63 ? 0x80 : 0;
    EXPECT_EQ(row.outlier_groups[b], groups_of_4) << b;
    EXPECT_EQ(row.blocks[b].scale, (b == 21 ? 1.2f : 1.0f) / 127.0f) << b;
  }
}

TEST_P(QuantizeRow, KeepsFifteenBitsOfBlocksWhereAllAreOutliers) {
  std::vector<float> x = random_row(2048, 0.01f, 5), large = random_row(32, 100.0f, 6);
  for (float& value : large) value += value > 0.0f ? 50.0f : -50.0f;
  std::ranges::copy(large, x.begin() + 64);
  const Row row = run(x);
  const float largest = std::abs(*std::ranges::max_element(large, {}, [](float v) { return std::abs(v); }));
  EXPECT_EQ(row.outlier_groups[2], 0xff);
  EXPECT_EQ(row.blocks[2].scale, largest / 16256.0f);
  for (std::size_t i = 64; i < 96; ++i) EXPECT_LE(std::abs(row.value(i) - x[i]), 0.502 * largest / 16256.0f);
}

TEST_P(QuantizeRow, KeepsCodesInRangeHoweverFarTheOutlierLies) {
  for (const float outlier : {300.0f, 1e4f, 1e10f, -1e10f, -kLargestInput}) {
    std::vector<float> x(1024, 1.0f);
    x[40] = outlier;
    const Row row = run(x);
    ASSERT_TRUE(row.finite);
    EXPECT_EQ(row.outlier_groups[1], 1 << 2);
    EXPECT_LE(std::abs(row.code(40)), 16256);
    EXPECT_NEAR(row.value(40) / outlier, 1.0, 1e-4);
  }
}

TEST_P(QuantizeRow, RoundsTiesToEven) {
  std::vector<float> x(32, 0.0f);
  x[0] = 127.0f;  // scale 1
  x[1] = 0.5f, x[2] = 1.5f, x[3] = -2.5f, x[4] = -127.0f, x[5] = 126.5f;
  const ActivationBlock block = run(x).blocks[0];
  EXPECT_EQ(block.q[1], 0);
  EXPECT_EQ(block.q[2], 2);
  EXPECT_EQ(block.q[3], -2);
  EXPECT_EQ(block.q[4], -127);
  EXPECT_EQ(block.q[5], 126);
}

TEST_P(QuantizeRow, RefusesNanAndInfinityAndHugeValuesAnywhereAndWritesZeros) {
  for (const float bad : {kNan, -kNan, kInfinity, -kInfinity, 2e30f, -2e30f}) {
    for (const std::size_t at : {0u, 7u, 8u, 31u, 32u, 95u}) {
      std::vector<float> x = random_row(96, 1.0f, 2);
      x[at] = bad;
      const Row row = run(x);
      EXPECT_FALSE(row.finite) << bad << " at " << at;
      for (const ActivationBlock& block : row.blocks) {
        EXPECT_EQ(block.scale, 0.0f);
        EXPECT_EQ(block.offset, 0);
        for (const std::int8_t q : block.q) EXPECT_EQ(q, 0);
      }
      for (const OutlierCodes& outliers : row.outliers) {
        for (const std::int8_t q : outliers.q) EXPECT_EQ(q, 0);
      }
      EXPECT_EQ(row.outlier_groups, std::vector<int>(3, 0));
    }
  }
}

TEST_P(QuantizeRow, KeepsTheLargestInputsAndDropsTheSmallestScales) {
  std::vector<float> x(64, kLargestInput);
  for (std::size_t i = 32; i < 64; ++i) x[i] = 100.0f * kLeastScale;
  const Row row = run(x);
  EXPECT_TRUE(row.finite);
  EXPECT_EQ(row.code(31), 16256);
  EXPECT_EQ(row.blocks[1].scale, 0.0f);
  EXPECT_EQ(row.blocks[1].q[0], 0);
}

TEST(ActivationTiles, LieOneAfterTheOther) {
  for (const std::int64_t k : {32, 96, 640, 2048}) {
    for (std::int64_t num_tokens = 1; num_tokens < 50; ++num_tokens) {
      const std::int64_t last_tile = (num_tokens - 1) / 16 * 16;
      std::vector<std::uint8_t> storage(static_cast<std::size_t>(activation_bytes(k, num_tokens)));
      const ActivationTile tile = activation_tile(storage.data(), k, last_tile, num_tokens);
      EXPECT_EQ(tile.width, num_tokens - last_tile);
      EXPECT_EQ(reinterpret_cast<std::uint8_t*>(tile.blocks) - storage.data(),
                activation_bytes(k, last_tile));
      EXPECT_EQ(activation_bytes(k, last_tile) % 64, 0);
      EXPECT_LE(tile.outlier_groups + k / 32 * 16, storage.data() + storage.size());
    }
  }
}

}  // namespace
}  // namespace kvasir::kernels::quantize_test
