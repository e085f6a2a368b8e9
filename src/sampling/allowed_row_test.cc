// Rows of which some tokens are allowed: what sample() reads of them, and that it is as if all were known.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "sampling/sampler.h"

namespace kvasir::sampling::allowed_row_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr std::size_t kTile = LogitRow::kTileSize;

struct Row {
  std::vector<float> logits;
  std::vector<float> maxima;  // of whole tiles
  std::vector<std::uint64_t> words;
};

// Tiles of which none, some or all tokens are allowed.
Row random_row(std::size_t size, std::uint32_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0.0f, 3.0f);
  Row row;
  for (std::size_t i = 0; i < size; ++i) row.logits.push_back(normal(random));
  for (std::size_t begin = 0; begin < size; begin += kTile) {
    const std::uint64_t kind = random() % 3;
    row.words.push_back(kind == 0 ? 0 : kind == 1 ? random() & random() : ~std::uint64_t{0});
    const auto end = row.logits.begin() + static_cast<std::ptrdiff_t>(std::min(size, begin + kTile));
    row.maxima.push_back(*std::max_element(row.logits.begin() + static_cast<std::ptrdiff_t>(begin), end));
  }
  row.words.back() |= 1;
  return row;
}

bool is_allowed(const Row& row, std::size_t token) { return (row.words[token / kTile] >> (token % kTile) & 1) != 0; }

Result<SampleOutput> sample_of(std::span<float> logits, const AllowedTokens& allowed, const SamplingParams& params,
                               std::span<const float> maxima = {}, std::span<const TokenId> suppressed = {}) {
  SamplerScratch scratch;
  const std::vector<TokenId> prompt = {1, 2, 3}, generated = {5, 63};
  return sample({.logits = logits,
                 .tile_maxima = maxima,
                 .params = params,
                 .prompt = prompt,
                 .generated = generated,
                 .suppressed = suppressed,
                 .allowed = allowed,
                 .seed = 9},
                scratch);
}

void expect_same(const SampleOutput& a, const SampleOutput& b) {
  EXPECT_EQ(a.token, b.token);
  ASSERT_EQ(a.logprobs.has_value(), b.logprobs.has_value());
  if (!a.logprobs) return;
  const auto bits = [](float value) { return std::bit_cast<std::uint32_t>(value); };
  EXPECT_EQ(bits(a.logprobs->chosen.logprob), bits(b.logprobs->chosen.logprob));
  EXPECT_EQ(a.logprobs->chosen.rank, b.logprobs->chosen.rank);
  ASSERT_EQ(a.logprobs->top.size(), b.logprobs->top.size());
  for (std::size_t i = 0; i < a.logprobs->top.size(); ++i) {
    EXPECT_EQ(a.logprobs->top[i].token, b.logprobs->top[i].token);
    EXPECT_EQ(bits(a.logprobs->top[i].logprob), bits(b.logprobs->top[i].logprob));
  }
}

std::vector<SamplingParams> many_params() {
  std::vector<SamplingParams> all = {{.temperature = 0.0f},
                                     {},
                                     {.top_k = 4},
                                     {.top_p = 0.8f},
                                     {.min_p = 0.05f},
                                     {.repetition_penalty = 1.4f, .presence_penalty = 0.5f},
                                     {.logit_bias = {{7, 50.0f}, {63, -50.0f}}}};
  for (std::size_t i = 0, count = all.size(); i < count; ++i) {
    all.push_back(all[i]);
    all.back().logprobs = 6;
  }
  return all;
}

// Masked tokens are minus infinity in one row, and unknown in the other, which knows the maxima of whole tiles.
TEST(AllowedRow, IsSampledAsOneWhoseOtherLogitsAreMinusInfinity) {
  for (const SamplingParams& params : many_params()) {
    for (std::uint32_t seed = 0; seed < 40; ++seed) {
      const Row row = random_row(64 * (1 + seed % 5) + seed % 7, seed);
      std::vector<float> hidden = row.logits, unknown = row.logits;
      for (std::size_t i = 0; i < hidden.size(); ++i) {
        if (!is_allowed(row, i)) hidden[i] = -kInfinity;
        if (row.words[i / kTile] == 0) unknown[i] = kNan;
      }
      std::vector<float> maxima = row.maxima;
      for (std::size_t i = 0; i < maxima.size(); ++i) {
        if (row.words[i] == 0) maxima[i] = kNan;
      }
      std::vector<float> masked = hidden;
      const auto expected = sample_of(masked, AllowedTokens::of(row.words), params);
      const auto known = sample_of(unknown, AllowedTokens::of(row.words), params, maxima);
      ASSERT_TRUE(expected);
      ASSERT_TRUE(known);
      expect_same(*known, *expected);
      EXPECT_TRUE(is_allowed(row, static_cast<std::size_t>(known->token)));
      const bool changes = params.repetition_penalty != 1.0f || !params.logit_bias.empty();
      if (changes || params.logprobs) continue;
      const auto free = sample_of(hidden, AllowedTokens::all(), params);
      expect_same(*known, *free);
    }
  }
}

// A search for the greatest leaves tiles out: they are not looked at, allowed or not.
TEST(AllowedRow, LeavesOutTilesWhoseKnownMaximumIsMinusInfinity) {
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    const Row row = random_row(640, seed);
    std::vector<float> whole = row.logits, searched = row.logits, maxima = row.maxima;
    const auto expected = sample_of(whole, AllowedTokens::of(row.words), {.temperature = 0.0f});
    const auto best = static_cast<std::size_t>(expected->token) / kTile;
    for (std::size_t i = 0; i < searched.size(); ++i) {
      if (i / kTile != best) searched[i] = kInfinity;
    }
    for (std::size_t i = 0; i < maxima.size(); ++i) maxima[i] = i == best ? row.maxima[i] : -kInfinity;
    const auto found = sample_of(searched, AllowedTokens::of(row.words), {.temperature = 0.0f}, maxima);
    EXPECT_EQ(found->token, expected->token);
  }
}

TEST(AllowedRow, OfOneTokenNeedsNoLogits) {
  std::vector<std::uint64_t> words(10);
  words[4] = 1 << 9;
  const AllowedTokens allowed = AllowedTokens::of(words);
  EXPECT_EQ(allowed.only(), 4 * 64 + 9);
  EXPECT_TRUE(reads_no_logit({}, allowed));
  for (const SamplingParams& params : many_params()) {
    std::vector<float> logits(640);
    for (std::size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>(i % 13);
    const auto known = sample_of(logits, allowed, params), unknown = sample_of({}, allowed, params);
    ASSERT_TRUE(unknown);
    EXPECT_EQ(unknown->token, 265);
    expect_same(*unknown, *known);
  }
  const std::vector<TokenId> suppressed = {265};
  EXPECT_FALSE(reads_no_logit(suppressed, allowed));
  std::vector<float> logits(640);
  EXPECT_FALSE(sample_of(logits, allowed, {}, {}, suppressed));
}

TEST(AllowedRow, CountsItsTokensAsFarAsTheyAreFew) {
  std::vector<std::uint64_t> words(100);
  EXPECT_EQ(AllowedTokens::of(words).count(), 0);
  EXPECT_EQ(AllowedTokens::of(words).only(), kNoToken);
  words[99] = 1;
  EXPECT_EQ(AllowedTokens::of(words).only(), 99 * 64);
  words[0] = 3;
  EXPECT_EQ(AllowedTokens::of(words).count(), 3);
  EXPECT_EQ(AllowedTokens::of(words).only(), kNoToken);
  std::ranges::fill(words, ~std::uint64_t{0});
  EXPECT_EQ(AllowedTokens::of(words).count(), AllowedTokens::kMany);
  EXPECT_FALSE(reads_no_logit({}, AllowedTokens::all()));
}

// The distribution of few tokens is that of the definition.
TEST(AllowedRow, KeepsTheOddsOfItsTokens) {
  Row row = random_row(300, 3);
  std::ranges::fill(row.words, 0);
  row.words[1] = 5;  // tokens 64 and 66
  row.logits[64] = 1.0f;
  row.logits[66] = 0.0f;
  int num_first = 0;
  constexpr int kDraws = 20'000;
  for (int i = 0; i < kDraws; ++i) {
    SamplerScratch scratch;
    std::vector<float> logits = row.logits;
    const SamplingParams params;
    const auto output = sample({.logits = logits,
                                .params = params,
                                .allowed = AllowedTokens::of(row.words),
                                .seed = static_cast<std::uint64_t>(i)},
                               scratch);
    num_first += output->token == 64 ? 1 : 0;
  }
  EXPECT_NEAR(num_first / static_cast<double>(kDraws), 0.7311, 0.01);
}

}  // namespace
}  // namespace kvasir::sampling::allowed_row_test
