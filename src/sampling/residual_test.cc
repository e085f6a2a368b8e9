// Tokens that a draft model guesses and residual sampling checks have the distribution of tokens that nobody guessed.
#include "sampling/stages/residual.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sampling/chi_square.h"
#include "sampling/sampler.h"
#include "sampling/stages/draw.h"

namespace kvasir::sampling::residual_test {
namespace {

constexpr std::size_t kVocab = 8;
constexpr std::size_t kGuesses = 3;             // of a round
constexpr std::size_t kTokens = kGuesses + 1;  // the last of which a round adds by itself

std::vector<float> random_logits(std::mt19937& random, std::size_t size) {
  std::normal_distribution<float> normal(0.0f, 1.3f);
  std::vector<float> logits(size);
  for (float& logit : logits) logit = normal(random);
  return logits;
}

// The distribution that the row has under these parameters.
Distribution distribution_of(std::vector<float> logits, const SamplingParams& params, TokenId last,
                             const AllowedTokens& allowed = AllowedTokens::all()) {
  Distribution drawn_from;
  SamplerScratch scratch;
  const std::array generated = {last};
  const auto output = sample({.logits = logits,
                              .tile_maxima = {},
                              .params = params,
                              .prompt = {},
                              .generated = generated,
                              .suppressed = {},
                              .allowed = allowed,
                              .guess_distribution = &drawn_from},
                             scratch);
  EXPECT_TRUE(output);
  return drawn_from;
}

std::vector<Candidate> candidates_of(const Distribution& distribution) {
  std::vector<Candidate> candidates;
  for (const auto& [token, weight] : distribution.entries()) candidates.push_back({.weight = weight, .token = token});
  return candidates;
}

// The distributions behind a token, in the model and in the one that guesses.
struct Behind {
  std::vector<Candidate> p, q;
  double total = 0.0;
  std::array<double, kVocab> probabilities{};  // p's
  Distribution guessed;                        // q
  Distribution unfiltered;                     // q without the request's parameters
};
using Table = std::array<Behind, kVocab>;

SamplingParams random_params(std::mt19937& random) {
  SamplingParams params;
  params.temperature = 0.5f + 0.1f * static_cast<float>(random() % 10);
  if (random() % 2 == 0) params.top_k = 3 + static_cast<std::int32_t>(random() % 4);
  if (random() % 2 == 0) params.top_p = 0.7f + 0.05f * static_cast<float>(random() % 5);
  if (random() % 3 == 0) params.min_p = 0.05f;
  if (random() % 3 == 0) params.repetition_penalty = 1.3f;
  if (random() % 3 == 0) params.logit_bias = {{2, 1.5f}, {5, -1.0f}};
  return params;
}

Table random_table(std::uint32_t seed) {
  std::mt19937 random(seed);
  const SamplingParams params = random_params(random);
  const std::uint64_t words = random() % 3 == 0 ? 0b11011110 : 0b11111111;
  const AllowedTokens allowed = AllowedTokens::of({&words, 1});
  Table table;
  for (std::size_t i = 0; i < kVocab; ++i) {
    const auto last = static_cast<TokenId>(i);
    Behind& behind = table.at(i);
    const std::vector<float> logits = random_logits(random, kVocab);
    std::vector<float> other = random_logits(random, kVocab);
    const float likeness = 0.25f * static_cast<float>(random() % 4);
    for (std::size_t j = 0; j < kVocab; ++j) other[j] += likeness * (logits[j] - other[j]);
    const Distribution p = distribution_of(logits, params, last, allowed);
    behind.guessed = distribution_of(other, params, last, allowed);
    behind.unfiltered = distribution_of(other, SamplingParams{}, last);
    behind.p = candidates_of(p);
    behind.q = candidates_of(behind.guessed);
    for (const Candidate& candidate : behind.p) behind.total += candidate.weight;
    for (const auto& entry : p.entries()) behind.probabilities.at(static_cast<std::size_t>(entry.token)) = p.probability(entry);
  }
  return table;
}

// Independent numbers for each position; of each purpose one.
struct Uniforms {
  std::array<double, kTokens> token, guess, acceptance, residual;

  explicit Uniforms(std::mt19937_64& random) {
    for (auto* numbers : {&token, &guess, &acceptance, &residual}) {
      for (double& number : *numbers) number = static_cast<double>(random() >> 11) * 0x1p-53;
    }
  }
};

// The rule, and others that look like it. `at`: the position. The token in place of the guess, or the guess.
using Rule = TokenId (*)(const Behind& behind, TokenId guess, const Uniforms& uniforms, std::size_t at);

double probability_in_p(const Behind& behind, TokenId token) {
  return behind.probabilities.at(static_cast<std::size_t>(token));
}

TokenId check_by(const Behind& behind, const Distribution& q, TokenId guess, double acceptance, double residual) {
  if (accepts_guess(probability_in_p(behind, guess), q.probability_of(guess), acceptance)) return guess;
  const TokenId token = draw_residual(behind.p, behind.total, q, residual);
  return token == kNoToken ? guess : token;
}

TokenId residual_rule(const Behind& behind, TokenId guess, const Uniforms& uniforms, std::size_t at) {
  return check_by(behind, behind.guessed, guess, uniforms.acceptance.at(at), uniforms.residual.at(at));
}

TokenId accept_always(const Behind&, TokenId guess, const Uniforms&, std::size_t) { return guess; }

TokenId unfiltered_q(const Behind& behind, TokenId guess, const Uniforms& uniforms, std::size_t at) {
  return check_by(behind, behind.unfiltered, guess, uniforms.acceptance.at(at), uniforms.residual.at(at));
}

TokenId shared_noise(const Behind& behind, TokenId guess, const Uniforms& uniforms, std::size_t at) {
  return check_by(behind, behind.guessed, guess, uniforms.guess.at(at), uniforms.guess.at(at));
}

TokenId p_instead_of_residual(const Behind& behind, TokenId guess, const Uniforms& uniforms, std::size_t at) {
  const double q = behind.guessed.probability_of(guess);
  if (accepts_guess(probability_in_p(behind, guess), q, uniforms.acceptance.at(at))) return guess;
  return draw(behind.p, uniforms.residual.at(at));
}

// The rest of p does not add up to 1, so the last token gets what is missing.
TokenId residual_as_it_is(const Behind& behind, TokenId guess, const Uniforms& uniforms, std::size_t at) {
  const double q = behind.guessed.probability_of(guess);
  if (accepts_guess(probability_in_p(behind, guess), q, uniforms.acceptance.at(at))) return guess;
  double left = uniforms.residual.at(at);
  TokenId token = guess;
  for (const Candidate& candidate : behind.p) {
    const double excess = candidate.weight / behind.total - behind.guessed.probability_of(candidate.token);
    if (excess <= 0.0) continue;
    token = candidate.token;
    left -= excess;
    if (left < 0.0) break;
  }
  return token;
}

// Rounds of guesses until there are kTokens; each begins where the one before found a guess that did not count.
std::size_t generate(const Table& table, Rule rule, const Uniforms& uniforms) {
  std::array<TokenId, kTokens + 1> tokens{};  // behind token 0
  std::size_t num_tokens = 0;
  while (num_tokens < kTokens) {
    std::array<TokenId, kGuesses> guesses{};
    const std::size_t num_guesses = std::min(kGuesses, kTokens - num_tokens);
    TokenId last = tokens.at(num_tokens);
    for (std::size_t i = 0; i < num_guesses; ++i) {
      last = draw(table.at(static_cast<std::size_t>(last)).q, uniforms.guess.at(num_tokens + i));
      guesses.at(i) = last;
    }
    bool goes_on = true;
    for (std::size_t i = 0; goes_on && i < num_guesses; ++i) {
      const Behind& behind = table.at(static_cast<std::size_t>(tokens.at(num_tokens)));
      const TokenId token = rule(behind, guesses.at(i), uniforms, num_tokens);
      tokens.at(++num_tokens) = token;
      goes_on = token == guesses.at(i);
    }
    if (!goes_on || num_tokens == kTokens) continue;
    const Behind& behind = table.at(static_cast<std::size_t>(tokens.at(num_tokens)));
    const TokenId token = draw(behind.p, uniforms.token.at(num_tokens));
    tokens.at(++num_tokens) = token;
  }
  std::size_t cell = 0;
  for (std::size_t i = 1; i <= kTokens; ++i) cell = cell * kVocab + static_cast<std::size_t>(tokens.at(i));
  return cell;
}

std::vector<double> probabilities_of(const Table& table) {
  std::vector<double> of_texts = {1.0};
  std::vector<std::size_t> last = {0};
  for (std::size_t i = 0; i < kTokens; ++i) {
    std::vector<double> longer;
    std::vector<std::size_t> ends;
    for (std::size_t text = 0; text < of_texts.size(); ++text) {
      for (std::size_t token = 0; token < kVocab; ++token) {
        longer.push_back(of_texts[text] * table.at(last[text]).probabilities.at(token));
        ends.push_back(token);
      }
    }
    of_texts = std::move(longer);
    last = std::move(ends);
  }
  return of_texts;
}

// All kTokens are counted together, so that what one token has to do with the next counts too.
double deviation_of(const Table& table, Rule rule, int num_draws, std::uint64_t seed) {
  std::vector<int> counts(probabilities_of(table).size());
  std::mt19937_64 random(seed);
  for (int i = 0; i < num_draws; ++i) ++counts[generate(table, rule, Uniforms(random))];
  return chi_square_deviation(counts, probabilities_of(table), num_draws);
}

constexpr std::uint32_t kTables = 64;

TEST(Residual, TextsHaveTheModelsDistribution) {
  for (std::uint32_t seed = 0; seed < kTables; ++seed) {
    EXPECT_LT(deviation_of(random_table(seed), residual_rule, 1'000'000, seed), kMostDeviation) << "table " << seed;
  }
}

TEST(Residual, RulesThatAreWrongHaveAnother) {
  const std::pair<const char*, Rule> rules[] = {{"each guess counts", accept_always},
                                                {"q without the request's parameters", unfiltered_q},
                                                {"one number for all", shared_noise},
                                                {"p instead of the residual", p_instead_of_residual},
                                                {"the residual does not add up to 1", residual_as_it_is}};
  for (const auto& [name, rule] : rules) {
    std::uint32_t num_found = 0;
    for (std::uint32_t seed = 0; seed < kTables; ++seed) {
      num_found += deviation_of(random_table(seed), rule, 40'000, seed) > kMostDeviation ? 1 : 0;
    }
    EXPECT_GE(num_found, kTables * 9 / 10) << name;
  }
}

// sample() with what requests may ask for.
struct Case {
  std::string name;
  SamplingParams params = {};
  std::vector<TokenId> suppressed = {};
  bool is_masked = false;
};

std::vector<Case> cases() {
  const auto with = [](const auto& change) {
    SamplingParams params;
    params.temperature = 0.8f;
    change(params);
    return params;
  };
  return {{.name = "all tokens", .params = with([](SamplingParams&) {})},
          {.name = "top-k", .params = with([](SamplingParams& p) { p.top_k = 20; })},
          {.name = "top-p", .params = with([](SamplingParams& p) { p.top_p = 0.8f; })},
          {.name = "min-p", .params = with([](SamplingParams& p) { p.min_p = 0.05f; })},
          {.name = "all three", .params = with([](SamplingParams& p) { p.top_k = 30, p.top_p = 0.9f, p.min_p = 0.02f; })},
          {.name = "penalties", .params = with([](SamplingParams& p) {
             p.repetition_penalty = 1.5f, p.frequency_penalty = 0.5f, p.presence_penalty = 0.5f;
           })},
          {.name = "bias", .params = with([](SamplingParams& p) { p.logit_bias = {{3, 3.0f}, {90, -2.0f}}; })},
          {.name = "suppressed", .params = with([](SamplingParams&) {}), .suppressed = {5, 70, 71}},
          {.name = "masked", .params = with([](SamplingParams& p) { p.top_p = 0.95f; }), .is_masked = true}};
}

class Sampled {
 public:
  explicit Sampled(const Case& asked) : asked_(asked) {
    std::mt19937 random(11);
    logits_ = random_logits(random, 100);
    guessing_ = random_logits(random, 100);
    for (std::size_t i = 0; i < logits_.size(); ++i) guessing_[i] = 0.7f * logits_[i] + 0.5f * guessing_[i];
    for (const std::size_t i : {3, 5, 70}) logits_[i] += 2.5f, guessing_[i] += 2.0f;
  }

  // `into`: the token is a guess, drawn from this. `checked_by`: the guess is checked, which was drawn from this.
  TokenId token(bool guesses, std::uint64_t seed, Distribution* into, const Distribution* checked_by, TokenId guess) {
    row_ = guesses ? guessing_ : logits_;
    const auto output = sample({.logits = row_,
                                .tile_maxima = {},
                                .params = asked_.params,
                                .prompt = prompt_,
                                .generated = generated_,
                                .suppressed = asked_.suppressed,
                                .allowed = asked_.is_masked ? AllowedTokens::of(words_) : AllowedTokens::all(),
                                .seed = seed,
                                .guess_distribution = into,
                                .guess_drawn_from = checked_by,
                                .guess = guess},
                               scratch_);
    EXPECT_TRUE(output);
    return output ? output->token : kNoToken;
  }

  Distribution distribution() {
    Distribution drawn_from;
    token(false, 0, &drawn_from, nullptr, kNoToken);
    return drawn_from;
  }
  Distribution unfiltered_guesses() const { return distribution_of(guessing_, SamplingParams{}, 0); }

 private:
  const Case& asked_;
  std::vector<float> logits_, guessing_, row_;
  const std::vector<TokenId> prompt_ = {3, 8}, generated_ = {3, 5, 5, 9};
  const std::array<std::uint64_t, 2> words_ = {0x00ff00ff00ff00ffu, 0x5555u};
  SamplerScratch scratch_;
};

struct Outcome {
  double deviation = 0.0;
  double share_accepted = 0.0, most_accepted = 0.0;
};

// `planted`: guesses are checked by another distribution than theirs.
Outcome check_guesses(const Case& asked, const Distribution* planted = nullptr) {
  constexpr int kDraws = 100'000;
  Sampled sampled(asked);
  std::vector<int> counts(100);
  Distribution q;
  int num_accepted = 0;
  for (int i = 0; i < kDraws; ++i) {
    const auto seed = static_cast<std::uint64_t>(i);
    const TokenId guess = sampled.token(true, seed, &q, nullptr, kNoToken);
    const TokenId token = sampled.token(false, seed, nullptr, planted == nullptr ? &q : planted, guess);
    num_accepted += token == guess ? 1 : 0;
    ++counts[static_cast<std::size_t>(token)];
  }
  const Distribution p = sampled.distribution();
  std::vector<double> probabilities(counts.size());
  Outcome outcome;
  for (const auto& entry : p.entries()) {
    probabilities[static_cast<std::size_t>(entry.token)] = p.probability(entry);
    outcome.most_accepted += std::min(p.probability(entry), q.probability_of(entry.token));
  }
  outcome.deviation = chi_square_deviation(counts, probabilities, kDraws);
  outcome.share_accepted = static_cast<double>(num_accepted) / kDraws;
  return outcome;
}

TEST(Residual, SampledTokensHaveTheirDistributionWhateverWasGuessed) {
  for (const Case& asked : cases()) {
    const Outcome outcome = check_guesses(asked);
    EXPECT_LT(outcome.deviation, kMostDeviation) << asked.name;
    EXPECT_NEAR(outcome.share_accepted, outcome.most_accepted, 0.006) << asked.name;
  }
}

TEST(Residual, SampledTokensShowADistributionThatIsNotTheirs) {
  for (const Case& asked : cases()) {
    const Distribution unfiltered = Sampled(asked).unfiltered_guesses();
    EXPECT_GT(check_guesses(asked, &unfiltered).deviation, kMostDeviation) << asked.name;
  }
}

// A model that guesses with the same distribution is always right.
TEST(Residual, AGuessFromTheSameDistributionCounts) {
  for (const Case& asked : cases()) {
    Sampled sampled(asked);
    Distribution q;
    for (std::uint64_t seed = 0; seed < 1000; ++seed) {
      const TokenId guess = sampled.token(false, seed, &q, nullptr, kNoToken);
      EXPECT_EQ(sampled.token(false, seed, nullptr, &q, guess), guess) << asked.name;
    }
  }
}

TEST(Residual, GreedyTokensLookAtNoGuess) {
  Case greedy{.name = "greedy"};
  greedy.params.temperature = 0.0f;
  Sampled sampled(greedy);
  Distribution q;
  q.assign_certain(50);
  EXPECT_EQ(sampled.token(false, 1, nullptr, &q, 50), sampled.token(false, 1, nullptr, nullptr, kNoToken));
}

}  // namespace
}  // namespace kvasir::sampling::residual_test
