#include "engine/beam_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <vector>

namespace kvasir::beam_search_test {
namespace {

using Tokens = std::vector<TokenId>;

// A model of a few tokens: log-probabilities that depend on all tokens before, by a seed.
class ToyModel {
 public:
  ToyModel(std::int32_t vocab_size, std::uint32_t seed) : vocab_size_(vocab_size), seed_(seed) {}

  std::vector<double> logprobs(const Tokens& before) const {
    std::seed_seq seeds(before.begin(), before.end());
    std::vector<std::uint32_t> hash(1);
    seeds.generate(hash.begin(), hash.end());
    std::mt19937 random(hash[0] ^ seed_);
    std::normal_distribution<double> normal(0.0, 1.5);
    std::vector<double> logits(static_cast<std::size_t>(vocab_size_));
    double sum = 0.0;
    for (double& logit : logits) sum += std::exp(logit = normal(random));
    for (double& logit : logits) logit = static_cast<float>(logit - std::log(sum));
    return logits;
  }
  PositionLogprobs top(const Tokens& before, std::int32_t count) const {
    const std::vector<double> all = logprobs(before);
    PositionLogprobs result;
    for (TokenId token = 0; token < vocab_size_; ++token) {
      result.top.push_back({.token = token, .logprob = static_cast<float>(all[static_cast<std::size_t>(token)])});
    }
    std::ranges::stable_sort(result.top, std::ranges::greater{}, &TokenLogprob::logprob);
    result.top.resize(static_cast<std::size_t>(std::min(count, vocab_size_)));
    return result;
  }

 private:
  std::int32_t vocab_size_;
  std::uint32_t seed_;
};

std::vector<BeamSearch::Answer> search(const ToyModel& model, const BeamSearch::Settings& settings) {
  BeamSearch beams(settings);
  std::vector<Tokens> tokens(static_cast<std::size_t>(settings.width));
  const std::int32_t count = BeamSearch::num_candidates(settings.width, settings.ends.size());
  while (!beams.is_done()) {
    for (std::size_t slot = 0; slot < tokens.size(); ++slot) {
      if (beams.is_live(slot)) beams.propose(slot, model.top(tokens[slot], count));
    }
    EXPECT_TRUE(beams.is_ready());
    const std::vector<Tokens> before = tokens;
    const auto moves = beams.advance();
    std::set<std::size_t> parents;
    for (std::size_t slot = 0; slot < moves.size(); ++slot) {
      if (!moves[slot]) continue;
      tokens[slot] = before[moves[slot]->parent];
      tokens[slot].push_back(moves[slot]->token);
      parents.insert(moves[slot]->parent);
    }
    for (const std::size_t parent : parents) EXPECT_EQ(moves[parent]->parent, parent);  // nobody else takes its place
  }
  return beams.answers();
}

struct Scored {
  Tokens tokens;
  double score;
};

// Every text up to max_tokens, the best first.
std::vector<Scored> all_texts(const ToyModel& model, const BeamSearch::Settings& settings) {
  std::vector<Scored> all;
  const auto go_on = [&](auto&& self, const Tokens& before, double sum) -> void {
    const std::vector<double> next = model.logprobs(before);
    for (TokenId token = 0; token < static_cast<TokenId>(next.size()); ++token) {
      Tokens tokens = before;
      tokens.push_back(token);
      const double with = sum + next[static_cast<std::size_t>(token)];
      const auto length = static_cast<std::int32_t>(tokens.size());
      const bool ends = length >= settings.min_tokens && std::ranges::find(settings.ends, token) != settings.ends.end();
      if (ends || length == settings.max_tokens) {
        all.push_back({tokens, with / std::pow(length, settings.length_penalty)});
      } else {
        self(self, tokens, with);
      }
    }
  };
  go_on(go_on, {}, 0.0);
  std::ranges::stable_sort(all, std::ranges::greater{}, &Scored::score);
  return all;
}

Tokens tokens_of(const BeamSearch::Answer& answer) {
  Tokens tokens;
  for (const sched::SampledToken& each : answer.tokens) tokens.push_back(each.token);
  return tokens;
}

// With room for every text nothing is left out.
TEST(BeamSearch, FindsTheBestOfAllTextsWhereItHasRoomForThem) {
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    for (const float length_penalty : {0.0f, 0.6f, 1.0f, 2.0f, -1.0f}) {
      const ToyModel model(4, seed);
      BeamSearch::Settings settings{.width = 64, .length_penalty = length_penalty, .max_tokens = 4, .ends = {3}};
      if (seed % 2 == 0) settings.min_tokens = 3;
      const std::vector<Scored> expected = all_texts(model, settings);
      const std::vector<BeamSearch::Answer> found = search(model, settings);
      ASSERT_EQ(found.size(), std::min<std::size_t>(64, expected.size()));
      for (std::size_t i = 0; i < found.size(); ++i) {
        ASSERT_EQ(tokens_of(found[i]), expected[i].tokens) << "seed " << seed << ", answer " << i;
        ASSERT_NEAR(found[i].score, expected[i].score, 1e-9);
      }
    }
  }
}

// A narrow search, written down another way: sets of texts instead of slots, and no early end.
TEST(BeamSearch, KeepsTheBestOfEachLength) {
  for (std::uint32_t seed = 1; seed <= 50; ++seed) {
    const ToyModel model(12, seed);
    const BeamSearch::Settings settings{.width = 3, .length_penalty = 1.0f, .max_tokens = 7, .ends = {0, 5}};
    std::vector<Scored> live = {{{}, 0.0}}, ended;
    for (std::int32_t length = 1; length <= settings.max_tokens; ++length) {
      std::vector<Scored> next;
      for (const Scored& beam : live) {
        const std::vector<double> logprobs = model.logprobs(beam.tokens);
        for (TokenId token = 0; token < 12; ++token) {
          Tokens tokens = beam.tokens;
          tokens.push_back(token);
          const double sum = beam.score + logprobs[static_cast<std::size_t>(token)];
          if (token == 0 || token == 5) {
            ended.push_back({tokens, sum / length});
          } else {
            next.push_back({tokens, sum});
          }
        }
      }
      std::ranges::stable_sort(next, std::ranges::greater{}, &Scored::score);
      next.resize(3);
      live = next;
    }
    for (const Scored& beam : live) ended.push_back({beam.tokens, beam.score / settings.max_tokens});
    std::ranges::stable_sort(ended, std::ranges::greater{}, &Scored::score);
    const std::vector<BeamSearch::Answer> found = search(model, settings);
    ASSERT_EQ(found.size(), 3u);
    for (std::size_t i = 0; i < 3; ++i) ASSERT_EQ(tokens_of(found[i]), ended[i].tokens) << "seed " << seed;
  }
}

TEST(BeamSearch, OneBeamIsGreedy) {
  const ToyModel model(9, 3);
  const auto found = search(model, {.width = 1, .max_tokens = 5});
  Tokens expected;
  for (int i = 0; i < 5; ++i) expected.push_back(model.top(expected, 1).top[0].token);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(tokens_of(found[0]), expected);
  EXPECT_EQ(found[0].finish_reason, FinishReason::kLength);
}

TEST(BeamSearch, ShowsTheAlternativesThatAreAskedFor) {
  const ToyModel model(9, 4);
  const auto found = search(model, {.width = 2, .max_tokens = 3, .num_logprobs = 2});
  for (const sched::SampledToken& token : found[0].tokens) {
    ASSERT_TRUE(token.logprobs);
    EXPECT_EQ(token.logprobs->chosen.token, token.token);
    EXPECT_EQ(token.logprobs->top.size(), 2u);
  }
}

}  // namespace
}  // namespace kvasir::beam_search_test
