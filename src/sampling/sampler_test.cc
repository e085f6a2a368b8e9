#include "sampling/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sampling/philox.h"

namespace kvasir::sampling::sampler_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Logits of a model's shape: most tokens unlikely, a few stand out; many exact ties when `quantised`.
std::vector<float> random_logits(std::size_t size, std::uint32_t seed, bool quantised = false) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, 2.0f);
  std::vector<float> logits(size);
  for (float& logit : logits) logit = normal(random);
  for (int i = 0; i < 5; ++i) logits[random() % size] += 4.0f;
  if (quantised) {
    for (float& logit : logits) logit = std::round(logit);
  }
  return logits;
}

struct Call {
  std::vector<float> logits;
  SamplingParams params;
  std::vector<TokenId> prompt = {};
  std::vector<TokenId> generated = {};
  std::vector<TokenId> suppressed = {};
  std::optional<std::vector<std::uint64_t>> mask = {};
  std::uint64_t seed = 1;
  std::int32_t choice_index = 0;
};

Result<SampleOutput> run(Call& call, SamplerScratch& scratch) {
  return sample({.logits = call.logits,
                 .params = call.params,
                 .prompt = call.prompt,
                 .generated = call.generated,
                 .suppressed = call.suppressed,
                 .allowed = call.mask ? AllowedTokens::of(*call.mask) : AllowedTokens::all(),
                 .seed = call.seed,
                 .choice_index = call.choice_index},
                scratch);
}

TokenId token_of(Call call) {
  SamplerScratch scratch;
  const auto output = run(call, scratch);
  EXPECT_TRUE(output);
  return output ? output->token : kNoToken;
}

// The distribution the definition gives: sorts everything, in double.
std::map<TokenId, double> naive_distribution(const std::vector<float>& logits, const SamplingParams& params) {
  std::vector<TokenId> order(logits.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<TokenId>(i);
  const auto logit = [&](TokenId token) {
    return static_cast<double>(logits[static_cast<std::size_t>(token)]);
  };
  std::ranges::stable_sort(order, [&](TokenId a, TokenId b) { return logit(a) > logit(b); });
  const double max = logit(order[0]);
  const auto weight = [&](TokenId token) { return std::exp((logit(token) - max) / params.temperature); };
  std::erase_if(
      order, [&](TokenId token) { return weight(token) < params.min_p * (1 - 1e-6) || weight(token) == 0; });
  if (params.top_k > 0 && order.size() > static_cast<std::size_t>(params.top_k)) {
    order.resize(static_cast<std::size_t>(params.top_k));
  }
  double total = 0.0;
  for (const TokenId token : order) total += weight(token);
  std::map<TokenId, double> distribution;
  double kept = 0.0;
  for (const TokenId token : order) {
    if (kept >= params.top_p * total) break;
    distribution[token] = weight(token);
    kept += weight(token);
  }
  for (auto& [token, probability] : distribution) probability /= kept;
  return distribution;
}

// Draws many tokens and compares their counts with the naive distribution by Pearson's chi-square.
void expect_draws_follow(const std::vector<float>& logits, SamplingParams params, const std::string& name) {
  constexpr int kDraws = 20000;
  const std::map<TokenId, double> expected = naive_distribution(logits, params);
  std::map<TokenId, int> counts;
  SamplerScratch scratch;
  Call call{.logits = {}, .params = std::move(params)};
  for (int i = 0; i < kDraws; ++i) {
    call.logits = logits;
    call.seed = static_cast<std::uint64_t>(i);
    const auto output = run(call, scratch);
    ASSERT_TRUE(output);
    ASSERT_TRUE(expected.contains(output->token))
        << name << ": token " << output->token << " is filtered out";
    ++counts[output->token];
  }
  double chi_square = 0.0, rest_expected = 0.0;
  int degrees = -1, rest_count = 0;
  const auto add_cell = [&](double want, int count) {
    chi_square += (count - want) * (count - want) / want;
    ++degrees;
  };
  for (const auto& [token, probability] : expected) {
    const double want = probability * kDraws;
    if (want < 8.0) {  // too rare for a cell of its own
      rest_expected += want;
      rest_count += counts[token];
    } else {
      add_cell(want, counts[token]);
    }
  }
  if (rest_expected >= 8.0) add_cell(rest_expected, rest_count);
  if (degrees < 1) return;
  // Wilson and Hilferty: the cube root of chi-square / degrees is nearly normal; 4.5 sigma is 3 in a million.
  const double spread = 2.0 / (9.0 * degrees);
  const double deviation = (std::cbrt(chi_square / degrees) - (1.0 - spread)) / std::sqrt(spread);
  EXPECT_LT(deviation, 4.5) << name << ": chi-square " << chi_square << " at " << degrees << " degrees";
}

TEST(Sampler, DrawsFromTheDistributionTheDefinitionsGive) {
  const std::vector<std::pair<std::string, SamplingParams>> cases = {
      {"plain", {}},
      {"cold", {.temperature = 0.5f}},
      {"hot", {.temperature = 3.0f}},
      {"top_k", {.top_k = 7}},
      {"top_k hot", {.temperature = 5.0f, .top_k = 100}},
      {"top_p", {.top_p = 0.9f}},
      {"top_p wide", {.temperature = 4.0f, .top_p = 0.97f}},
      {"min_p", {.min_p = 0.03f}},
      {"min_p top_p", {.top_p = 0.8f, .min_p = 0.01f}},
      {"all", {.temperature = 1.5f, .top_k = 40, .top_p = 0.9f, .min_p = 0.02f}},
  };
  for (const auto& [name, params] : cases) {
    expect_draws_follow(random_logits(50, 1), params, name + ", 50 tokens");
    expect_draws_follow(random_logits(1000, 2), params, name + ", 1000 tokens");
    expect_draws_follow(random_logits(300, 3, true), params, name + ", 300 tokens with ties");
  }
}

TEST(Sampler, IsGreedyWhenOnlyOneTokenIsLeft) {
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    const std::vector<float> logits = random_logits(64 + seed * 13, seed, seed % 2 == 0);
    const TokenId best = static_cast<TokenId>(std::ranges::max_element(logits) - logits.begin());
    EXPECT_EQ(token_of({.logits = logits, .params = {.temperature = 0.0f}}), best);
    EXPECT_EQ(token_of({.logits = logits, .params = {.temperature = 1e-6f}}), best);
    EXPECT_EQ(token_of({.logits = logits, .params = {.temperature = 2.0f, .top_k = 1}}), best);
    EXPECT_EQ(token_of({.logits = logits, .params = {.temperature = 2.0f, .top_p = 1e-6f}}), best);
    EXPECT_EQ(token_of({.logits = logits, .params = {.temperature = 2.0f, .top_p = 0.0f}, .seed = seed}),
              best);
    EXPECT_EQ(token_of({.logits = logits, .params = {.top_k = 20, .top_p = 0.0f}, .seed = seed}), best);
    EXPECT_EQ(token_of({.logits = logits, .params = {.top_p = 0.0f, .min_p = 0.1f}, .seed = seed}), best);
  }
}

TEST(Sampler, KeepsExactlyTheTiedMaximaAtMinPOne) {
  std::vector<float> logits(500, -1.0f);
  for (const std::size_t token : {3u, 77u, 499u}) logits[token] = 2.5f;
  std::map<TokenId, int> counts;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    ++counts[token_of({.logits = logits, .params = {.min_p = 1.0f}, .seed = seed})];
  }
  EXPECT_EQ(counts.size(), 3u);
  for (const TokenId token : {3, 77, 499}) EXPECT_GT(counts[token], 50);
}

TEST(Sampler, RepeatsItselfForTheSameSeedChoiceAndPositionOnly) {
  const std::vector<float> logits = random_logits(2000, 9);
  const auto draw = [&](std::uint64_t seed, std::int32_t choice, std::size_t position) {
    return token_of({.logits = logits,
                     .params = {.temperature = 3.0f},
                     .generated = std::vector<TokenId>(position, 0),
                     .seed = seed,
                     .choice_index = choice});
  };
  int same_seed = 0, same_choice = 0, same_position = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    EXPECT_EQ(draw(seed, 0, 5), draw(seed, 0, 5));
    same_seed += draw(seed, 0, 5) == draw(seed + 1000, 0, 5);
    same_choice += draw(seed, 0, 5) == draw(seed, 1, 5);
    same_position += draw(seed, 0, 5) == draw(seed, 0, 6);
  }
  EXPECT_LT(same_seed, 10);
  EXPECT_LT(same_choice, 10);
  EXPECT_LT(same_position, 10);
}

TEST(Sampler, NeverChoosesASuppressedToken) {
  const std::vector<TokenId> suppressed = {0, 1, 2, 3, 4, 5, 6};
  std::vector<float> logits(8, 0.0f);
  logits[0] = 50.0f;
  EXPECT_EQ(token_of({.logits = logits, .params = {.temperature = 0.0f}, .suppressed = suppressed}), 7);
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    EXPECT_EQ(token_of({.logits = logits, .params = {}, .suppressed = suppressed, .seed = seed}), 7);
    EXPECT_EQ(
        token_of({.logits = logits, .params = {.top_p = 0.99f}, .suppressed = suppressed, .seed = seed}), 7);
  }
}

TEST(Sampler, AddsBiasOnceForEachEntry) {
  SamplingParams params{.temperature = 0.0f};
  params.logit_bias = {{4, 3.0f}, {2, -100.0f}, {4, 3.0f}};
  Call call{.logits = {0, 1, 9, 3, 4}, .params = params};
  SamplerScratch scratch;
  EXPECT_EQ(run(call, scratch)->token, 4);
  EXPECT_EQ(call.logits, (std::vector<float>{0, 1, -91, 3, 10}));
}

TEST(Sampler, PenalisesSeenTokensAsTheFormulasSay) {
  SamplerScratch scratch;  // shared, so that what one call leaves behind would show in the next
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    const std::size_t size = 20 + random() % 100;
    SamplingParams params{.temperature = 0.0f};
    if (random() % 3 != 0) params.repetition_penalty = 0.5f + static_cast<float>(random() % 100) / 50.0f;
    if (random() % 3 != 0) params.presence_penalty = static_cast<float>(random() % 5) - 2.0f;
    if (random() % 3 != 0) params.frequency_penalty = static_cast<float>(random() % 9) / 2.0f - 2.0f;
    Call call{.logits = random_logits(size, static_cast<std::uint32_t>(round)), .params = params};
    for (std::size_t i = random() % 30; i > 0; --i)
      call.prompt.push_back(static_cast<TokenId>(random() % size));
    for (std::size_t i = random() % 30; i > 0; --i)
      call.generated.push_back(static_cast<TokenId>(random() % size));

    std::vector<float> expected = call.logits;
    for (std::size_t i = 0; i < size; ++i) {
      const auto token = static_cast<TokenId>(i);
      const auto count = static_cast<float>(std::ranges::count(call.generated, token));
      const bool seen = count > 0 || std::ranges::count(call.prompt, token) > 0;
      float& logit = expected[i];
      if (seen) logit = logit > 0 ? logit / params.repetition_penalty : logit * params.repetition_penalty;
      if (count > 0) logit -= params.frequency_penalty * count + params.presence_penalty;
    }
    ASSERT_TRUE(run(call, scratch));
    for (std::size_t i = 0; i < size; ++i) ASSERT_FLOAT_EQ(call.logits[i], expected[i]) << "token " << i;
  }
}

TEST(Sampler, ReportsLogprobsOfTheDistributionBeforeTemperature) {
  for (const std::size_t size : {1u, 5u, 64u, 65u, 1000u, 30000u}) {
    SamplingParams params{.temperature = 3.0f};
    params.logprobs = 20;
    Call call{.logits = random_logits(size, 4, size == 1000), .params = params};
    SamplerScratch scratch;
    const auto output = run(call, scratch);
    ASSERT_TRUE(output && output->logprobs);
    const std::map<TokenId, double> expected = naive_distribution(call.logits, {});
    const auto& [chosen, top] = *output->logprobs;
    EXPECT_EQ(chosen.token, output->token);
    EXPECT_NEAR(chosen.logprob, std::log(expected.at(chosen.token)), 2e-6);
    ASSERT_EQ(top.size(), std::min<std::size_t>(20, size));
    for (std::size_t i = 0; i < top.size(); ++i) {
      EXPECT_NEAR(top[i].logprob, std::log(expected.at(top[i].token)), 2e-6);
      EXPECT_EQ(top[i].rank, static_cast<std::int32_t>(i) + 1);
      EXPECT_EQ(logprobs_of(call.logits, top[i].token, 0, scratch)->chosen.rank, top[i].rank);
    }
    EXPECT_EQ(top[0].token, std::ranges::max_element(call.logits) - call.logits.begin());
  }
}

TEST(Sampler, GivesImpossibleTokensTheLeastLogprob) {
  SamplerScratch scratch;
  const std::vector<float> logits = {0.0f, -kInfinity, -20000.0f};
  const auto logprobs = logprobs_of(logits, 1, 3, scratch);
  ASSERT_TRUE(logprobs);
  EXPECT_EQ(logprobs->chosen.logprob, kMinLogprob);
  EXPECT_EQ(logprobs->chosen.rank, 3);
  EXPECT_EQ(logprobs->top[0].logprob, 0.0f);
  EXPECT_EQ(logprobs->top[1].logprob, kMinLogprob);
  EXPECT_EQ(logprobs->top[2].token, 1);
}

TEST(Sampler, FailsTheRequestWhenTheLogitsAreBroken) {
  SamplerScratch scratch;
  for (const std::size_t size : {3u, 64u, 200u}) {
    for (const float broken : {std::numeric_limits<float>::quiet_NaN(), kInfinity}) {
      for (const std::size_t place : {std::size_t{0}, size / 2, size - 1}) {
        Call call{.logits = std::vector<float>(size, 1.0f), .params = {}};
        call.logits[place] = broken;
        const auto output = run(call, scratch);
        ASSERT_FALSE(output);
        EXPECT_EQ(output.error().kind, ErrorKind::kBadFile);
      }
    }
    Call call{.logits = std::vector<float>(size, -kInfinity), .params = {}};
    EXPECT_FALSE(run(call, scratch));
  }
}

TEST(Sampler, SurvivesExtremeParametersAndLogits) {
  SamplerScratch scratch;
  for (const float scale : {1e-30f, 1.0f, 1e4f, 1e37f}) {
    for (const float temperature : {1e-5f, 1.0f, 1e30f}) {
      for (const SamplingParams& base :
           {SamplingParams{}, {.top_p = 0.999999f}, {.min_p = 1e-30f}, {.top_k = 3, .top_p = 1e-30f}}) {
        Call call{.logits = random_logits(150, 3), .params = base};
        call.params.temperature = temperature;
        for (float& logit : call.logits) logit *= scale;
        const auto output = run(call, scratch);
        ASSERT_TRUE(output) << scale << " " << temperature;
        EXPECT_GE(output->token, 0);
        EXPECT_LT(output->token, 150);
      }
    }
  }
}

std::vector<std::uint64_t> mask_of(std::size_t size, std::span<const TokenId> tokens) {
  std::vector<std::uint64_t> mask((size + 63) / 64);
  for (const TokenId token : tokens) {
    mask[static_cast<std::size_t>(token) / 64] |= std::uint64_t{1} << (static_cast<std::size_t>(token) % 64);
  }
  return mask;
}

// Whatever else is set: no draw ever gives a token that the mask forbids, and the others keep their odds.
TEST(Sampler, ChoosesAmongAllowedTokensAlone) {
  constexpr std::size_t kSize = 333;
  const std::vector<TokenId> allowed = {0, 5, 64, 65, 200, 319, 332};
  for (const SamplingParams& base :
       {SamplingParams{}, {.temperature = 0.0f}, {.top_k = 40}, {.top_k = 2}, {.top_p = 0.9f}, {.min_p = 0.01f},
        {.repetition_penalty = 1.3f, .presence_penalty = 1.0f}, {.logit_bias = {{7, 100.0f}, {5, -100.0f}}}}) {
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      const TokenId token = token_of({.logits = random_logits(kSize, static_cast<std::uint32_t>(seed)),
                                      .params = base,
                                      .prompt = {0, 1, 2},
                                      .generated = {64, 3},
                                      .mask = mask_of(kSize, allowed),
                                      .seed = seed});
      EXPECT_NE(std::ranges::find(allowed, token), allowed.end()) << token;
    }
  }
}

TEST(Sampler, TheMaskOfAllTokensChangesNothing) {
  constexpr std::size_t kSize = 150;
  std::vector<TokenId> every(kSize);
  for (std::size_t i = 0; i < kSize; ++i) every[i] = static_cast<TokenId>(i);
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Call free = {.logits = random_logits(kSize, 9), .params = {.top_p = 0.95f}, .seed = seed};
    Call masked = free;
    masked.mask = mask_of(kSize, every);
    EXPECT_EQ(token_of(masked), token_of(free));
  }
}

// The mask comes before log-probabilities: they are of what may be chosen, and no other token is an alternative.
TEST(Sampler, LogprobsKnowAllowedTokensAlone) {
  SamplerScratch scratch;
  SamplingParams params;
  params.logprobs = 5;
  Call only = {.logits = random_logits(100, 4), .params = params, .mask = mask_of(100, std::vector<TokenId>{42})};
  const auto one = run(only, scratch);
  ASSERT_TRUE(one);
  EXPECT_EQ(one->token, 42);
  EXPECT_EQ(one->logprobs->chosen.logprob, 0.0f);
  EXPECT_EQ(one->logprobs->chosen.rank, 1);
  ASSERT_EQ(one->logprobs->top.size(), 1u);
  EXPECT_EQ(one->logprobs->top[0].token, 42);
  Call three = {.logits = random_logits(100, 4), .params = params, .mask = mask_of(100, std::vector<TokenId>{1, 70, 99})};
  const auto several = run(three, scratch);
  ASSERT_TRUE(several);
  ASSERT_EQ(several->logprobs->top.size(), 3u);
  double total = 0.0;
  for (const TokenLogprob& top : several->logprobs->top) total += std::exp(static_cast<double>(top.logprob));
  EXPECT_NEAR(total, 1.0, 1e-5);
}

// An empty mask is no mask of all: nothing may be chosen.
TEST(Sampler, AnEmptyMaskAllowsNothing) {
  SamplerScratch scratch;
  Call call = {.logits = random_logits(100, 4), .params = {}, .mask = std::vector<std::uint64_t>()};
  EXPECT_FALSE(run(call, scratch));
}

TEST(Philox, MatchesThePublishedVectors) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, DrawsUniformly) {
  constexpr int kDraws = 100000;
  double sum = 0.0, squares = 0.0;
  for (int i = 0; i < kDraws; ++i) {
    const double draw = uniform_draw(7, 0, static_cast<std::uint64_t>(i), Draw::kGuess);
    ASSERT_GE(draw, 0.0);
    ASSERT_LT(draw, 1.0);
    sum += draw;
    squares += draw * draw;
  }
  EXPECT_NEAR(sum / kDraws, 1.0 / 2, 0.004);
  EXPECT_NEAR(squares / kDraws, 1.0 / 3, 0.004);
}

// The maxima that the model's last step found give the same row as reading all logits.
TEST(LogitRow, TakesKnownMaxima) {
  for (const std::size_t size : {64u, 200u, 640u, 1000u}) {
    std::vector<float> logits(size);
    for (std::size_t i = 0; i < size; ++i) logits[i] = static_cast<float>(i * 37 % 101);
    std::vector<float> maxima((size + 63) / 64,
                              1000.0f);  // that of a tile which is not whole is not believed
    for (std::size_t i = 0; i + 64 <= size; i += 64) {
      maxima[i / 64] = *std::max_element(&logits[i], &logits[i] + 64);
    }
    LogitRow row, known;
    row.assign(logits);
    known.assign(logits, maxima);
    EXPECT_EQ(known.max(), row.max());
    EXPECT_EQ(known.argmax(), row.argmax());
    EXPECT_FALSE(known.has_nan());
    logits[5] = maxima[0] = std::numeric_limits<float>::quiet_NaN();
    known.assign(logits, maxima);
    EXPECT_TRUE(known.has_nan());
  }
}

}  // namespace
}  // namespace kvasir::sampling::sampler_test
