// Statistics of keys, and what kernels read of them.
#include "kv/cells/key_bases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kv/cells/cell.h"

namespace kvasir::kv::key_bases_test {
namespace {

constexpr std::int32_t kHeadDim = 32;

// Directions are the channels, each with 2 bits.
KeyStatistics plain_statistics() {
  KeyStatistics statistics{.mean = std::vector<float>(kHeadDim, 1.0f), .directions = {}, .deviations = {}, .bits = {}};
  for (std::int32_t c = 0; c < kHeadDim; ++c) {
    for (std::int32_t d = 0; d < kHeadDim; ++d) statistics.directions.push_back(c == d ? 1.0f : 0.0f);
    statistics.deviations.push_back(2.0f);
    statistics.bits.push_back(2);
  }
  return statistics;
}

TEST(ComponentBits, AreTwoForEachChannelAndMoreWhereKeysVaryMore) {
  std::vector<float> deviations;
  for (int i = 0; i < 64; ++i) deviations.push_back(std::pow(0.9f, static_cast<float>(i)));
  const std::vector<std::int8_t> bits = component_bits(deviations);
  int sum = 0;
  for (const std::int8_t each : bits) sum += each;
  EXPECT_EQ(sum, 128);
  EXPECT_TRUE(std::ranges::is_sorted(bits, std::ranges::greater()));
  EXPECT_LT(bits.size(), 64u);
  EXPECT_GE(bits.front(), 4);
  EXPECT_EQ(component_bits(std::vector<float>(64, 1.0f)), std::vector<std::int8_t>(64, 2));
}

TEST(KeyBases, RefusesWhatIsNotWhole) {
  EXPECT_TRUE(KeyBases::are_whole(plain_statistics(), kHeadDim));
  EXPECT_FALSE(KeyBases::are_whole(plain_statistics(), 2 * kHeadDim));
  EXPECT_FALSE(KeyBases::are_whole({}, kHeadDim));
  KeyStatistics statistics = plain_statistics();
  statistics.bits.back() = 1;
  EXPECT_FALSE(KeyBases::are_whole(statistics, kHeadDim)) << "bits in all";
  statistics.bits.front() = 3;
  EXPECT_TRUE(KeyBases::are_whole(statistics, kHeadDim));
  std::swap(statistics.bits.front(), statistics.bits.back());
  EXPECT_FALSE(KeyBases::are_whole(statistics, kHeadDim)) << "bits rise";
  statistics = plain_statistics();
  statistics.deviations[3] = 0.0f;
  EXPECT_FALSE(KeyBases::are_whole(statistics, kHeadDim));
  statistics.deviations[3] = NAN;
  EXPECT_FALSE(KeyBases::are_whole(statistics, kHeadDim));
}

// With the channels for directions a number n of two bits means mean + step (n - 1.5).
TEST(KeyBases, GiveANumberTheMeaningThatItIsWrittenWith) {
  const std::vector<double> frequencies = {0.5};
  const KeyBases bases(std::vector{plain_statistics()}, kHeadDim, {.inverse_frequencies = frequencies, .turns_halves = true}, 3);
  const KeyBasis& basis = *bases.data();
  EXPECT_EQ(basis.num_components, kHeadDim);
  EXPECT_EQ(basis.stride, kHeadDim);
  EXPECT_EQ(basis.num_with_bit[0], kHeadDim);
  EXPECT_EQ(basis.num_with_bit[1], kHeadDim);
  EXPECT_EQ(basis.num_with_bit[2], 0);
  EXPECT_FLOAT_EQ(basis.angles_of(2)[0], std::cos(16.0f));
  EXPECT_FLOAT_EQ(basis.angles_of(2)[1], -std::sin(16.0f));
  const float step = basis.of_queries[0];
  EXPECT_NEAR(step, 2 * 0.9957f, 1e-5f);
  EXPECT_NEAR(static_cast<float>(basis.query_codes[0]) * basis.query_units[0], step, 1e-5f);
  EXPECT_EQ(basis.query_codes[1], 0) << "the next channel";
  for (int number = 0; number < 4; ++number) {
    const float key = 1.0f + step * (static_cast<float>(number) - 1.5f);
    EXPECT_NEAR(basis.constants[0] + step * static_cast<float>(number), key, 1e-5f);
    EXPECT_NEAR(key * basis.of_keys[0] + basis.key_offsets[0], number, 1e-5f);
  }
  EXPECT_EQ(basis.greatest_numbers[0], 3.0f);
}

TEST(KeyBases, TakeTheBytesOfTwoBitsForEachNumber) {
  EXPECT_EQ(key_bytes(KvFormat::kK2pV2, 64), 256);
  EXPECT_EQ(cell_bytes(KvFormat::kK2pV2, 64), 256 + 320);
  EXPECT_TRUE(is_coarser(KvFormat::kK2pV2, KvFormat::kK3V2));
  EXPECT_TRUE(is_coarser(KvFormat::kGone, KvFormat::kK2pV2));
  EXPECT_FALSE(is_coarser(KvFormat::kK3V2, KvFormat::kK2pV2));
}

}  // namespace
}  // namespace kvasir::kv::key_bases_test
