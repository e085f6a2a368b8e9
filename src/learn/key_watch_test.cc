// Statistics of keys: what varies together is found, whatever the keys' positions are.
#include "learn/key_watch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "base/half.h"
#include "kv/policy/registry.h"
#include "learn/principal_components.h"

namespace kvasir::learn::key_watch_test {
namespace {

constexpr std::int32_t kHeadDim = 32, kNumBlocks = 120;

TEST(PrincipalComponents, AreTheDirectionsThatVaryMost) {
  // Variances 9, 4 and 1 along turned axes.
  const double c = std::cos(0.7), s = std::sin(0.7);
  const double axes[3][3] = {{c, s, 0.0}, {-s * c, c * c, s}, {s * s, -s * c, c}};
  const double variances[3] = {4.0, 9.0, 1.0};
  std::vector<double> covariance(9);
  for (int k = 0; k < 3; ++k) {
    for (int i = 0; i < 9; ++i) covariance[static_cast<std::size_t>(i)] += variances[k] * axes[k][i / 3] * axes[k][i % 3];
  }
  const PrincipalComponents found = principal_components(covariance, 3);
  const int order[3] = {1, 0, 2};
  for (std::size_t k = 0; k < 3; ++k) {
    EXPECT_NEAR(found.variances[k], variances[order[k]], 1e-9);
    double dot = 0.0;
    for (std::size_t d = 0; d < 3; ++d) dot += found.directions[3 * k + d] * axes[order[k]][d];
    EXPECT_NEAR(std::abs(dot), 1.0, 1e-9);
  }
}

// Keys before RoPE are 2 + 5 x along one direction and a little noise; then they turn by their position.
class KeyWatchOfText : public testing::Test {
 protected:
  KeyWatchOfText() {
    for (std::int32_t b = 0; b < kNumBlocks; ++b) {
      blocks_.push_back(BlockId{b});
      EXPECT_TRUE(cells_.fill(0, blocks_.back()));
    }
    for (std::int32_t i = 0; i < kHeadDim / 2; ++i) frequencies_.push_back(std::pow(10000.0, -2.0 * i / kHeadDim) / kv::kTokensPerBlock / 16);
    memory_.resize(static_cast<std::size_t>(2 * kv::CellArena::bytes_for(kNumBlocks, kv::KvFormat::kF16, kHeadDim)) + (1 << 20));
    std::mt19937 random(5);
    std::normal_distribution<double> normal;
    for (std::int32_t b = 0; b < kNumBlocks; ++b) {
      for (std::int32_t t = 0; t < kv::kTokensPerBlock; ++t) {
        std::vector<double> key(kHeadDim, 2.0);
        const double along = 5.0 * normal(random);
        for (double& number : key) number += 0.01 * normal(random);
        key[3] += 0.6 * along;
        key[20] += 0.8 * along;
        if (b == 0) key[7] += 1000.0;  // the first tokens' keys are not like others
        write(b, t, key);
      }
    }
  }
  void write(std::int32_t block, std::int32_t token, std::vector<double> key) {
    for (std::size_t i = 0; i < frequencies_.size(); ++i) {
      const double angle = block * kv::kTokensPerBlock * frequencies_[i], c = std::cos(angle), s = std::sin(angle);
      const double a = key[2 * i], b = key[2 * i + 1];
      key[2 * i] = a * c - b * s;
      key[2 * i + 1] = b * c + a * s;
    }
    std::byte* const cell = memory_.data() + cells_.at(0, BlockId{block}, 0).offset();
    for (std::int32_t d = 0; d < kHeadDim; ++d) {
      const std::uint16_t half = float_to_half(static_cast<float>(key[static_cast<std::size_t>(d)]));
      std::memcpy(cell + (d * kv::kTokensPerBlock + token) * 2, &half, sizeof(half));
    }
  }
  KeyWatch::ReadCell reader() const {
    return [this](kv::KvCellRef cell, std::span<std::byte> bytes) { std::memcpy(bytes.data(), memory_.data() + cell.offset(), bytes.size()); };
  }
  kv::PolicyView view(std::int32_t num_full_blocks) const {
    return {.cells = cells_, .settings = settings_, .costs = costs_, .blocks = blocks_, .num_full_blocks = num_full_blocks};
  }

  static constexpr kv::CellStore::Group kGroup = {.num_blocks = kNumBlocks, .cells_per_block = 1, .head_dim = kHeadDim};
  kv::CellStore cells_{{&kGroup, 1}, kv::KvFormat::kF16, 2 * kv::CellArena::bytes_for(kNumBlocks, kv::KvFormat::kF16, kHeadDim), 0};
  const kv::FormatCosts costs_ = kv::usual_format_costs();
  kv::KvPolicySettings settings_;
  std::vector<BlockId> blocks_;
  std::vector<std::byte> memory_;
  std::vector<double> frequencies_;
  std::vector<kv::CellAction> actions_;
};

TEST_F(KeyWatchOfText, FindsWhatVariesTogetherWhereverBlocksStand) {
  const KeyWatch watch(reader(), {kv::KeyTurning{.inverse_frequencies = frequencies_}});
  for (std::int32_t b = 1; b <= kNumBlocks; b += 3) watch.plan(view(b), actions_);
  EXPECT_TRUE(actions_.empty()) << "it only looks";
  const auto statistics = watch.statistics_of(0);
  ASSERT_EQ(statistics.size(), 1u);
  const kv::KeyStatistics& head = statistics.front();
  ASSERT_TRUE(kv::KeyBases::are_whole(head, kHeadDim));
  EXPECT_NEAR(head.deviations.front(), 5.0f, 0.3f);
  EXPECT_NEAR(std::abs(head.directions[3]), 0.6f, 0.01f);
  EXPECT_NEAR(std::abs(head.directions[20]), 0.8f, 0.01f);
  EXPECT_EQ(head.bits.front(), kv::kMaxComponentBits);
  EXPECT_NEAR(head.mean[7], 2.0f, 0.1f) << "the first block counts";
}

TEST_F(KeyWatchOfText, SaysNothingOfFewKeysNorOfGroupsThatTurnInSeveralWays) {
  const KeyWatch watch(reader(), {kv::KeyTurning{.inverse_frequencies = frequencies_}});
  watch.plan(view(4), actions_);
  EXPECT_TRUE(watch.statistics_of(0).empty());
  const KeyWatch blind(reader(), {std::nullopt});
  blind.plan(view(kNumBlocks), actions_);
  EXPECT_TRUE(blind.statistics_of(0).empty());
}

}  // namespace
}  // namespace kvasir::learn::key_watch_test
