#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <utility>

#include "kernels/activation.h"
#include "kernels/every_isa.h"

namespace kvasir::kernels {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

class QuantizeRow : public EveryIsa {
 protected:
  struct Row {
    bool finite = false;
    std::vector<ActivationBlock> blocks = {}, residuals = {};  // residuals of outliers; zeros elsewhere
    std::vector<bool> is_outlier = {};
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
      result.is_outlier.push_back(tile.is_outlier(b, kToken));
      result.residuals.push_back(tile.residuals[at]);
      EXPECT_EQ(static_cast<std::uint8_t>(tile.blocks[at - 1].q[0]), 0xcd);
      EXPECT_EQ(tile.outliers[b * kTokensPerActivationTile + kToken - 1], 0xcd);
      for (std::int32_t t = kNumTokens; t < kTokensPerActivationTile; ++t) {
        EXPECT_FALSE(tile.is_outlier(b, t));
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
      ASSERT_EQ(row.is_outlier, expected.is_outlier);
      ASSERT_EQ(std::memcmp(row.residuals.data(), expected.residuals.data(), row.residuals.size() * 48), 0);
    }
  }
}

TEST_P(QuantizeRow, WideGivesTheBitsOfTheScalarReference) {
  for (const std::int64_t k : {32, 96, 256, 288, 576, 2048}) {
    for (const float deviation : {1.0f, 1e-26f, 1e28f}) {
      SCOPED_TRACE("k " + std::to_string(k) + " deviation " + std::to_string(deviation));
      std::vector<float> x = random_row(k, deviation, static_cast<std::uint32_t>(k));
      for (std::size_t i = 5; i < x.size(); i += 411) x[i] *= 30.0f;
      std::vector<std::vector<std::uint8_t>> results;
      for (const KernelTable* isa : {&table(), find_table("ref")}) {
        results.emplace_back(static_cast<std::size_t>(isa->activation_bytes(k, 3)), 0xcd);
        EXPECT_TRUE(isa->quantize_row_wide(x.data(), k, 1, 3, results.back().data()));
      }
      EXPECT_EQ(results[0], results[1]);
      x[static_cast<std::size_t>(k) - 1] = kNan;
      EXPECT_FALSE(table().quantize_row_wide(x.data(), k, 1, 3, results[0].data()));
    }
  }
}

TEST_P(QuantizeRow, RoundsToTheNearestStepAndSumsWhatItWrote) {
  const std::vector<float> x = random_row(640, 3.0f, 11);
  const Row row = run(x);
  for (std::size_t b = 0; b < row.blocks.size(); ++b) {
    const ActivationBlock& block = row.blocks[b];
    int sum = 0, sum_high = 0;
    float amax = 0.0f;
    for (int i = 0; i < 32; ++i) {
      amax = std::fmax(amax, std::fabs(x[b * 32 + i]));
      EXPECT_LE(std::abs(block.q[i] * double{block.scale} - x[b * 32 + i]), 0.50001 * block.scale);
      sum += block.q[i];
      if (i >= 16) sum_high += block.q[i];
    }
    EXPECT_EQ(block.scale, amax / 127.0f);
    EXPECT_EQ(block.offset, -128 * sum);
    EXPECT_EQ(block.offset_high, -128 * sum_high);
    EXPECT_EQ(block.scaled_sum, block.scale * static_cast<float>(sum));
  }
}

TEST_P(QuantizeRow, KeepsSixteenBitsOfOutlierBlocks) {
  std::vector<float> x = random_row(2048, 1.0f, 5);
  for (const std::size_t at : {3u, 700u, 701u, 2047u}) x[at] = 40.0f;
  const Row row = run(x);
  for (std::size_t b = 0; b < row.blocks.size(); ++b) {
    EXPECT_EQ(row.is_outlier[b], b == 0 || b == 21 || b == 63) << b;
    if (!row.is_outlier[b]) continue;
    const ActivationBlock &block = row.blocks[b], &residual = row.residuals[b];
    for (int i = 0; i < 32; ++i) {
      const double value = block.q[i] * double{block.scale} + residual.q[i] * double{residual.scale};
      EXPECT_LE(std::abs(value - x[b * 32 + static_cast<std::size_t>(i)]), 0.502 * residual.scale);
    }
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
    }
  }
}

TEST_P(QuantizeRow, KeepsTheLargestInputsAndDropsTheSmallestScales) {
  std::vector<float> x(64, kLargestInput);
  for (std::size_t i = 32; i < 64; ++i) x[i] = 100.0f * kLeastScale;
  const Row row = run(x);
  EXPECT_TRUE(row.finite);
  EXPECT_EQ(row.blocks[0].q[31], 127);
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
      EXPECT_LE(tile.outliers + k / 32 * 16, storage.data() + storage.size());
    }
  }
}

}  // namespace
}  // namespace kvasir::kernels
