// Draws by shared Gumbel noise have the distribution of the weights, and those of two models agree as often as can be proved.
#include "sampling/stages/gumbel_max.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sampling/chi_square.h"
#include "sampling/fast_exp.h"
#include "sampling/sampler.h"

namespace kvasir::sampling::gumbel_max_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> random_logits(std::mt19937& random, std::size_t size, float spread = 1.3f) {
  std::normal_distribution<float> normal(0.0f, spread);
  std::vector<float> logits(size);
  for (float& logit : logits) logit = normal(random);
  return logits;
}

std::vector<Candidate> candidates_of(std::span<const float> logits) {
  std::vector<Candidate> candidates;
  for (const float logit : logits) {
    candidates.push_back({.logit = logit, .weight = fast_exp(logit - std::ranges::max(logits)),
                          .token = static_cast<TokenId>(candidates.size())});
  }
  return candidates;
}

std::vector<double> softmax(std::span<const float> logits, double temperature = 1.0) {
  const double max = std::ranges::max(logits);
  std::vector<double> probabilities;
  double total = 0.0;
  for (const float logit : logits) total += probabilities.emplace_back(std::exp((logit - max) / temperature));
  for (double& probability : probabilities) probability /= total;
  return probabilities;
}

using Rule = TokenId (*)(std::span<const Candidate> candidates, const GumbelNoise& noise);

TokenId rule_itself(std::span<const Candidate> candidates, const GumbelNoise& noise) { return gumbel_max(candidates, noise); }

template <typename Time>
TokenId first_by(std::span<const Candidate> candidates, const Time& time) {
  return std::ranges::min(candidates, {}, time).token;
}

// v instead of -ln(1 - v): what it is near 0, where races of many tokens are decided.
TokenId uniform_for_exponential(std::span<const Candidate> candidates, const GumbelNoise& noise) {
  return first_by(candidates, [&](const Candidate& one) { return noise.uniform(one.token) / one.weight; });
}

// The noise of a token reaches its neighbour.
TokenId noise_of_two(std::span<const Candidate> candidates, const GumbelNoise& noise) {
  return first_by(candidates, [&](const Candidate& one) { return noise.exponential(one.token / 2) / one.weight; });
}

double deviation_of(std::span<const float> logits, Rule rule, int num_draws, std::uint64_t seed) {
  const std::vector<Candidate> candidates = candidates_of(logits);
  std::vector<int> counts(logits.size());
  for (int i = 0; i < num_draws; ++i) {
    ++counts[static_cast<std::size_t>(rule(candidates, GumbelNoise(seed, 0, static_cast<std::uint64_t>(i))))];
  }
  return chi_square_deviation(counts, softmax(logits), num_draws);
}

constexpr std::uint32_t kTables = 64;

TEST(GumbelMax, TokensHaveTheDistributionOfTheWeights) {
  std::mt19937 random(1);
  for (std::uint32_t seed = 0; seed < kTables; ++seed) {
    EXPECT_LT(deviation_of(random_logits(random, 8), rule_itself, 1'000'000, seed), kMostDeviation) << "table " << seed;
  }
}

TEST(GumbelMax, RulesThatAreNearlyRightHaveAnother) {
  for (const Rule rule : {uniform_for_exponential, noise_of_two}) {
    std::mt19937 random(1);
    std::uint32_t num_found = 0;
    for (std::uint32_t seed = 0; seed < kTables; ++seed) {
      num_found += deviation_of(random_logits(random, 8), rule, 40'000, seed) > kMostDeviation ? 1 : 0;
    }
    EXPECT_GE(num_found, kTables * 9 / 10);
  }
}

// What requests may ask for; `keeps` says which tokens stay, the likeliest having rank 0 and the mass before them.
struct Case {
  std::string name;
  SamplingParams params = {};
  std::function<bool(std::size_t token, std::size_t rank, double mass_before, double share_of_most)> keeps;
  bool is_masked = false;
};

constexpr std::array<std::uint64_t, 2> kWords = {0x00ff00ff00ff00ffu, 0x5555u};

bool is_allowed(std::size_t token) { return (kWords.at(token / 64) >> token % 64 & 1) != 0; }

std::vector<Case> cases() {
  const auto with = [](float temperature, const auto& change) {
    SamplingParams params;
    params.temperature = temperature;
    change(params);
    return params;
  };
  const auto all = [](std::size_t, std::size_t, double, double) { return true; };
  return {{.name = "all tokens", .params = with(0.8f, [](SamplingParams&) {}), .keeps = all},
          {.name = "hot", .params = with(2.0f, [](SamplingParams&) {}), .keeps = all},
          {.name = "top-k",
           .params = with(1.0f, [](SamplingParams& p) { p.top_k = 20; }),
           .keeps = [](std::size_t, std::size_t rank, double, double) { return rank < 20; }},
          {.name = "top-p",
           .params = with(0.8f, [](SamplingParams& p) { p.top_p = 0.8f; }),
           .keeps = [](std::size_t, std::size_t, double mass, double) { return mass < 0.8; }},
          {.name = "min-p",
           .params = with(1.2f, [](SamplingParams& p) { p.min_p = 0.05f; }),
           .keeps = [](std::size_t, std::size_t, double, double share) { return share >= 0.05; }},
          {.name = "masked", .params = with(1.0f, [](SamplingParams&) {}), .keeps = all, .is_masked = true},
          {.name = "masked, top-k",
           .params = with(1.0f, [](SamplingParams& p) { p.top_k = 10; }),
           .keeps = [](std::size_t, std::size_t rank, double, double) { return rank < 10; },
           .is_masked = true}};
}

std::vector<double> probabilities_of(std::vector<float> logits, const Case& asked) {
  if (asked.is_masked) {
    for (std::size_t i = 0; i < logits.size(); ++i) logits[i] = is_allowed(i) ? logits[i] : -kInfinity;
  }
  const std::vector<double> whole = softmax(logits, static_cast<double>(asked.params.temperature));
  std::vector<std::size_t> order(logits.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t token) { return logits[token]; });
  std::vector<double> kept(logits.size());
  double mass = 0.0, total = 0.0;
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    const std::size_t token = order[rank];
    if (asked.keeps(token, rank, mass, whole[token] / whole[order[0]])) total += kept[token] = whole[token];
    mass += whole[token];
  }
  for (double& probability : kept) probability /= total;
  return kept;
}

TEST(GumbelMax, SampledTokensHaveTheirDistribution) {
  constexpr int kDraws = 200'000;
  std::mt19937 random(12);
  const std::vector<float> logits = random_logits(random, 100, 2.0f);
  for (const Case& asked : cases()) {
    SamplerScratch scratch;
    std::vector<int> counts(logits.size());
    for (int i = 0; i < kDraws; ++i) {
      std::vector<float> row = logits;
      const auto output = sample({.logits = row,
                                  .tile_maxima = {},
                                  .params = asked.params,
                                  .prompt = {},
                                  .generated = {},
                                  .suppressed = {},
                                  .allowed = asked.is_masked ? AllowedTokens::of(kWords) : AllowedTokens::all(),
                                  .seed = static_cast<std::uint64_t>(i)},
                                 scratch);
      ASSERT_TRUE(output);
      ++counts[static_cast<std::size_t>(output->token)];
    }
    EXPECT_LT(chi_square_deviation(counts, probabilities_of(logits, asked), kDraws), kMostDeviation) << asked.name;
  }
}

// Tokens that hardly come are counted by how likely they are, and by where they stand.
TEST(GumbelMax, ALongTailHasItsShare) {
  constexpr std::size_t kVocab = 50'000;
  constexpr int kDraws = 100'000;
  std::mt19937 random(2);
  std::vector<float> logits = random_logits(random, kVocab, 2.0f);
  for (const std::size_t token : {7u, 30'000u, 49'999u}) logits[token] += 12.0f;
  LogitRow row;
  row.assign(logits);
  for (const float temperature : {0.7f, 1.0f}) {
    const std::vector<double> probabilities = softmax(logits, static_cast<double>(temperature));
    std::vector<int> counts(kVocab), by_weight(80), by_place(kVocab / 500);
    std::vector<double> of_weight(by_weight.size()), of_place(by_place.size());
    const auto weight_cell = [&](std::size_t token) {
      return static_cast<std::size_t>(std::min(79.0, -2.0 * std::log(probabilities[token])));
    };
    for (int i = 0; i < kDraws; ++i) {
      const auto token = static_cast<std::size_t>(
          gumbel_max(row, 1.0f / temperature, GumbelNoise(9, 0, static_cast<std::uint64_t>(i))));
      ++counts[token], ++by_weight[weight_cell(token)], ++by_place[token / 500];
    }
    for (std::size_t token = 0; token < kVocab; ++token) {
      of_weight[weight_cell(token)] += probabilities[token];
      of_place[token / 500] += probabilities[token];
    }
    EXPECT_LT(chi_square_deviation(counts, probabilities, kDraws), kMostDeviation) << temperature;
    EXPECT_LT(chi_square_deviation(by_weight, of_weight, kDraws), kMostDeviation) << temperature;
    EXPECT_LT(chi_square_deviation(by_place, of_place, kDraws), kMostDeviation) << temperature;
  }
}

// Each token's time, and the least of them.
TokenId first_of_all(std::span<const float> logits, float inverse_temperature, const GumbelNoise& noise) {
  const float max = std::ranges::max(logits);
  double least = std::numeric_limits<double>::infinity();
  TokenId first = kNoToken;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const float weight = fast_exp((logits[i] - max) * inverse_temperature);
    if (weight == 0.0f) continue;
    const double time = noise.exponential(static_cast<TokenId>(i)) / weight;
    if (time < least) least = time, first = static_cast<TokenId>(i);
  }
  return first;
}

// Rows with impossible tokens, and with tiles of nothing else; flat ones; and those of which one token is left.
std::vector<float> row_of(std::mt19937& random, std::size_t size) {
  std::vector<float> logits = random_logits(random, size, 0.5f + static_cast<float>(random() % 4));
  if (random() % 4 == 0) std::ranges::fill(logits, 1.0f);
  for (std::size_t i = random() % 4; i > 0; --i) logits[random() % size] += 6.0f;
  if (random() % 3 == 0) {
    for (float& logit : logits) logit = random() % 3 == 0 ? -kInfinity : logit;
  }
  if (random() % 3 == 0) {
    for (std::size_t begin = 0; begin < size; begin += 64) {
      if (random() % 2 == 0) continue;
      for (std::size_t i = begin; i < std::min(size, begin + 64); ++i) logits[i] = -kInfinity;
    }
  }
  if (random() % 16 == 0) std::ranges::fill(logits, -kInfinity);
  if (std::ranges::max(logits) == -kInfinity) logits[random() % size] = 2.0f;
  return logits;
}

TEST(GumbelMax, LeavesOutNoTileThatCouldWin) {
  std::mt19937 random(4);
  for (const std::size_t size : {1u, 3u, 63u, 64u, 65u, 191u, 256u, 300u, 1000u, 4096u, 20'011u}) {
    for (std::uint64_t position = 0; position < 300; ++position) {
      const std::vector<float> logits = row_of(random, size);
      LogitRow row;
      row.assign(logits);
      const GumbelNoise noise(5, 0, position);
      for (const float temperature : {0.02f, 0.5f, 1.0f, 4.0f, 1e4f}) {
        const TokenId expected = first_of_all(logits, 1.0f / temperature, noise);
        ASSERT_EQ(gumbel_max(row, 1.0f / temperature, noise), expected) << size << " tokens, row " << position;
      }
    }
  }
}

TEST(GumbelMax, CandidatesMayHaveAnyOrder) {
  std::mt19937 random(8);
  for (std::uint64_t position = 0; position < 2000; ++position) {
    const std::vector<float> logits = row_of(random, 1 + random() % 100);
    std::vector<Candidate> candidates = candidates_of(logits);
    const GumbelNoise noise(6, 2, position);
    const TokenId expected = first_of_all(logits, 1.0f, noise);
    EXPECT_EQ(gumbel_max(candidates, noise), expected);
    std::ranges::shuffle(candidates, random);
    EXPECT_EQ(gumbel_max(candidates, noise), expected);
  }
}

// Infinite weights make times equal, which no others are likely to do.
TEST(GumbelMax, TheLowestIdIsFirstAmongEquals) {
  std::vector<Candidate> candidates = {{.weight = 1.0f, .token = 1}};
  for (const TokenId token : {9, 4, 7}) candidates.push_back({.weight = kInfinity, .token = token});
  for (std::uint64_t position = 0; position < 20; ++position) {
    EXPECT_EQ(gumbel_max(candidates, GumbelNoise(3, 0, position)), 4);
    std::ranges::reverse(candidates);
  }
}

// A model that lacks the last tokens draws as one to which they are impossible.
TEST(GumbelMax, ASmallerVocabularyHasTheSameNoise) {
  std::mt19937 random(9);
  for (std::uint64_t position = 0; position < 500; ++position) {
    const std::vector<float> small = random_logits(random, 150 + random() % 100);
    std::vector<float> large = small;
    large.resize(400, -kInfinity);
    LogitRow one, other;
    one.assign(small);
    other.assign(large);
    EXPECT_EQ(gumbel_max(one, 1.0f, GumbelNoise(1, 0, position)), gumbel_max(other, 1.0f, GumbelNoise(1, 0, position)));
  }
}

struct Agreement {
  double share = 0.0, least = 0.0;  // the latter less three sigmas
};

Agreement agreement_of(std::mt19937& random, std::uint64_t other_seed) {
  constexpr int kDraws = 20'000;
  const std::vector<float> logits = random_logits(random, 200, 2.0f), noise = random_logits(random, 200);
  std::vector<float> others = logits;
  const float difference = 0.05f * static_cast<float>(random() % 20);
  for (std::size_t i = 0; i < others.size(); ++i) others[i] += difference * noise[i];
  const std::vector<double> p = softmax(logits), q = softmax(others);
  double variation = 0.0;
  for (std::size_t i = 0; i < p.size(); ++i) variation += std::abs(p[i] - q[i]) / 2.0;
  LogitRow row, other;
  row.assign(logits);
  other.assign(others);
  int num_same = 0;
  for (std::uint64_t i = 0; i < kDraws; ++i) {
    num_same += gumbel_max(row, 1.0f, GumbelNoise(7, 0, i)) == gumbel_max(other, 1.0f, GumbelNoise(other_seed, 0, i)) ? 1 : 0;
  }
  const double bound = (1.0 - variation) / (1.0 + variation);
  return {.share = static_cast<double>(num_same) / kDraws,
          .least = bound - 3.0 * std::sqrt(bound * (1.0 - bound) / kDraws)};
}

TEST(GumbelMax, TwoDistributionsAgreeAsOftenAsIsProved) {
  std::mt19937 random(10);
  for (int pair = 0; pair < 40; ++pair) {
    const Agreement agreement = agreement_of(random, 7);
    EXPECT_GE(agreement.share, agreement.least);
  }
}

TEST(GumbelMax, UnderOtherNoiseTheyDoNot) {
  std::mt19937 random(10);
  for (int pair = 0; pair < 40; ++pair) {
    const Agreement agreement = agreement_of(random, 8);
    EXPECT_LT(agreement.share, agreement.least);
  }
}

}  // namespace
}  // namespace kvasir::sampling::gumbel_max_test
