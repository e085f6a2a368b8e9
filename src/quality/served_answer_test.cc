#include "quality/served_answer.h"

#include <gtest/gtest.h>

#include "quality/shadow_sampler.h"
#include "quality/shadow_score.h"

namespace kvasir::quality::served_answer_test {
namespace {

RequestOutput piece(TokenId token, std::size_t num_top) {
  RequestOutput output;
  output.token_ids = {token};
  output.logprobs.push_back({.chosen = {.token = token}, .top = std::vector<TokenLogprob>(num_top)});
  return output;
}

TEST(ServedAnswer, LeavesNoneOfItsAlternativesToAClientThatAskedForNone) {
  Request request;
  request.prompt_token_ids = {1, 2, 3};
  ServedAnswer answer = begin_answer(request, {});
  EXPECT_EQ(request.sampling.logprobs, kServedAlternatives);
  RequestOutput output = piece(9, 8);
  keep(answer, output);
  EXPECT_TRUE(output.logprobs.empty());
  EXPECT_EQ(answer.tokens, (std::vector<TokenId>{1, 2, 3, 9}));
  ASSERT_EQ(answer.logprobs.size(), 1u);
  EXPECT_EQ(answer.logprobs[0].top.size(), 8u);
}

TEST(ServedAnswer, AClientGetsAsManyAlternativesAsItAskedFor) {
  for (const int asked : {0, 3, 20}) {
    Request request;
    request.sampling.logprobs = asked;
    ServedAnswer answer = begin_answer(request, {});
    RequestOutput output = piece(9, static_cast<std::size_t>(*request.sampling.logprobs));
    keep(answer, output);
    ASSERT_EQ(output.logprobs.size(), 1u);
    EXPECT_EQ(output.logprobs[0].top.size(), static_cast<std::size_t>(asked));
    EXPECT_EQ(answer.logprobs[0].top.size(), 8u);
  }
}

TEST(ServedAnswer, IsScoredBehindAllOthersFromItsFirstTokenOn) {
  Request request;
  request.prompt_token_ids = {1, 2, 3};
  request.kv = {.policy = "ladder", .budget = 0.2};
  request.adapter = "a";
  ServedAnswer answer = begin_answer(request, {});
  RequestOutput output = piece(9, 8);
  keep(answer, output);
  const Request scoring = scoring_request(answer);
  EXPECT_EQ(scoring.prompt_token_ids, answer.tokens);
  EXPECT_EQ(scoring.prompt_logprobs_from, 3);
  EXPECT_EQ(scoring.sampling.max_tokens, 0);
  EXPECT_EQ(scoring.kv.policy, "none");
  EXPECT_EQ(scoring.adapter, "a");
  EXPECT_GT(scoring.priority, 1'000'000);
  EXPECT_FALSE(scoring.use_prefix_cache);
}

TEST(ServedAnswer, OneWhoseDistributionIsNotTheModelsOwnIsNoShadow) {
  EXPECT_TRUE(can_be_shadow({}));
  const auto refused = [](auto change) {
    Request request;
    change(request);
    return !can_be_shadow(request);
  };
  EXPECT_TRUE(refused([](Request& r) { r.sampling.n = 2; }));
  EXPECT_TRUE(refused([](Request& r) { r.sampling.max_tokens = 0; }));
  EXPECT_TRUE(refused([](Request& r) { r.sampling.repetition_penalty = 1.1f; }));
  EXPECT_TRUE(refused([](Request& r) { r.sampling.logit_bias = {{1, 2.0f}}; }));
  EXPECT_TRUE(refused([](Request& r) { r.sampling.min_tokens = 1; }));
  EXPECT_TRUE(refused([](Request& r) { r.guide.emplace(); }));
  EXPECT_TRUE(refused([](Request& r) { r.pooling = Pooling::kMean; }));
}

TEST(ShadowSampler, ChoosesItsShareAndTheSameEachTime) {
  const ShadowSampler some({1, 2}, 0.05), others({3, 4}, 0.05), all({1, 2}, 1.0), none({1, 2}, 0.0);
  int num_chosen = 0, num_by_both = 0;
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    num_chosen += some.is_shadow(i);
    num_by_both += some.is_shadow(i) && others.is_shadow(i);
    ASSERT_TRUE(all.is_shadow(i));
    ASSERT_FALSE(none.is_shadow(i));
    ASSERT_EQ(some.is_shadow(i), some.is_shadow(i));
  }
  EXPECT_NEAR(num_chosen, 5000, 300);
  EXPECT_LT(num_by_both, 400) << "another key chooses others";
}

}  // namespace
}  // namespace kvasir::quality::served_answer_test
