// Attention sinks: a score of each query head that takes its share of the softmax and has no value.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "kernels/every_isa.h"
#include "kernels/table.h"

namespace kvasir::kernels::attention_sink_test {
namespace {

constexpr std::int32_t kGroupSize = 3, kHeadDim = 40, kTokens = 2, kRows = kTokens * kGroupSize;

struct Partials {
  std::vector<float> out, max, sum;
};

Partials random_partials(std::int32_t num_chunks) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0.0f, 2.0f);
  Partials partials;
  for (std::int32_t i = 0; i < num_chunks * kRows; ++i) {
    partials.max.push_back(normal(random));
    partials.sum.push_back(1.0f + std::abs(normal(random)));
    for (std::int32_t d = 0; d < kHeadDim; ++d) partials.out.push_back(normal(random));
  }
  return partials;
}

struct Merged {
  std::vector<float> out = std::vector<float>(kRows * kHeadDim);
  std::vector<float> log_sum_exp = std::vector<float>(kRows);
};

Merged merge(const KernelTable& table, const Partials& partials, const float* sinks) {
  Merged merged;
  table.attention_merge({.partial_out = partials.out.data(),
                         .partial_max = partials.max.data(),
                         .partial_sum = partials.sum.data(),
                         .num_chunks = static_cast<std::int32_t>(partials.max.size()) / kRows,
                         .num_rows = kRows,
                         .group_size = kGroupSize,
                         .head_dim = kHeadDim,
                         .out = merged.out.data(),
                         .out_stride = kGroupSize * kHeadDim,
                         .log_sum_exp = merged.log_sum_exp.data(),
                         .sinks = sinks});
  return merged;
}

// One that does not matter, one like a key, one above all keys.
constexpr float kSinks[kGroupSize] = {-60.0f, 0.5f, 9.0f};

class AttentionSink : public EveryIsa {};
INSTANTIATE_TEST_SUITE_P(Isa, AttentionSink, testing::ValuesIn(host_tables()), isa_name);

TEST_P(AttentionSink, TakesItsShareOfTheSoftmax) {
  for (const std::int32_t num_chunks : {1, 3}) {
    const Partials partials = random_partials(num_chunks);
    const Merged plain = merge(table(), partials, nullptr), sunk = merge(table(), partials, kSinks);
    for (std::int32_t row = 0; row < kRows; ++row) {
      const double keys = std::exp(double{plain.log_sum_exp[row]}), sink = std::exp(kSinks[row % kGroupSize]);
      EXPECT_NEAR(sunk.log_sum_exp[row], std::log(keys + sink), 2e-6);
      for (std::int32_t d = 0; d < kHeadDim; ++d) {
        const std::size_t i = static_cast<std::size_t>(row) * kHeadDim + d;
        const double expected = plain.out[i] * keys / (keys + sink);
        ASSERT_NEAR(sunk.out[i], expected, 2e-6 * std::abs(expected)) << num_chunks << " chunks, row " << row;
      }
    }
  }
}

// The tokens beside a row decide how many chunks it is merged from.
TEST_P(AttentionSink, AChunkWithoutKeysOfTheRowChangesNoBit) {
  Partials partials = random_partials(1);
  const Merged lone = merge(table(), partials, kSinks);
  partials.out.resize(2 * partials.out.size());
  partials.sum.resize(2 * partials.sum.size());
  partials.max.resize(2 * partials.max.size(), -std::numeric_limits<float>::infinity());
  EXPECT_EQ(merge(table(), partials, kSinks).out, lone.out);
}

TEST(AttentionSinkAcrossIsas, AgreesBitForBitWhereThereAreVectors) {
  const KernelTable* avx2 = find_table("avx2");
  const KernelTable* avx512 = find_table("avx512");
  if (avx2 == nullptr || avx512 == nullptr) GTEST_SKIP() << "this host has one vector ISA at most";
  const Partials partials = random_partials(3);
  EXPECT_EQ(merge(*avx2, partials, kSinks).out, merge(*avx512, partials, kSinks).out);
}

}  // namespace
}  // namespace kvasir::kernels::attention_sink_test
