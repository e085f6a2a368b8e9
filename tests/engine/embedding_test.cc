// Embeddings: the direction of a prompt's final hidden states, whatever runs beside it and however it is cut.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "generate.h"

namespace kvasir::testing::embedding_test {
namespace {

EngineConfig config(const std::string& model) {
  return {.model_path = std::string(KVASIR_SOURCE_DIR) + "/tests/cases/models/" + model + ".gguf",
          .num_threads = 2,
          .memory_bytes = 1ll << 30,
          .kv_cache_tokens = 4096};
}

std::unique_ptr<Engine> load(const EngineConfig& config) {
  auto engine = Engine::load(config);
  EXPECT_TRUE(engine) << engine.error().message;
  return engine ? std::move(*engine) : nullptr;
}

Request embedding_request(std::vector<TokenId> prompt, Pooling pooling) {
  Request request;
  request.prompt_token_ids = std::move(prompt);
  request.sampling.max_tokens = 0;
  request.use_prefix_cache = false;
  request.pooling = pooling;
  return request;
}

std::vector<float> embedding(Engine& engine, const std::vector<TokenId>& prompt, Pooling pooling) {
  const Answer answer = generate(engine, {embedding_request(prompt, pooling)})[0];
  EXPECT_EQ(answer.error, "");
  return answer.embedding;
}

double dot(const std::vector<float>& a, const std::vector<float>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

class Embedding : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Models, Embedding, ::testing::Values("llama-f32", "qwen3-q4_1", "gemma3-q5_0", "gemma4-q4_0"),
                         [](const auto& param_info) {
                           std::string name(param_info.param);
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST_P(Embedding, IsTheSameHoweverThePromptIsCut) {
  const auto reference = load(config(GetParam()));
  ASSERT_NE(reference, nullptr);
  const auto prompts = random_prompts(3, 60, 300, reference->model_info().vocab_size, 7);
  for (const std::int32_t chunk_tokens : {0, 1, 16, 100}) {
    for (const bool is_prefill_only : {true, false}) {
      EngineConfig varied = config(GetParam());
      varied.max_chunk_tokens = chunk_tokens;
      varied.prefill_only = is_prefill_only;
      const auto engine = load(varied);
      ASSERT_NE(engine, nullptr);
      for (const auto& prompt : prompts) {
        for (const Pooling pooling : {Pooling::kMean, Pooling::kLast}) {
          const std::vector<float> expected = embedding(*reference, prompt, pooling);
          EXPECT_NEAR(dot(expected, expected), 1.0, 1e-6);
          EXPECT_EQ(embedding(*engine, prompt, pooling), expected) << chunk_tokens;
        }
      }
    }
  }
}

// With a causal model the last hidden state of a prefix is that of the whole prompt at the same place, so the
// mean's direction is a sum of theirs with some weights above 0: what is orthogonal to all of them is
// nothing.
TEST_P(Embedding, OfAllTokensLiesAmongThoseOfEach) {
  const auto engine = load(config(GetParam()));
  ASSERT_NE(engine, nullptr);
  const std::vector<TokenId> prompt = random_prompts(1, 5, 5, engine->model_info().vocab_size, 3)[0];
  std::vector<double> rest;
  for (const float value : embedding(*engine, prompt, Pooling::kMean)) rest.push_back(value);
  std::vector<std::vector<double>> basis;  // by Gram and Schmidt
  const auto take_away = [](std::vector<double>& from, const std::vector<double>& direction) {
    const double along = std::inner_product(from.begin(), from.end(), direction.begin(), 0.0);
    for (std::size_t i = 0; i < from.size(); ++i) from[i] -= along * direction[i];
  };
  for (std::size_t n = 1; n <= prompt.size(); ++n) {
    const auto last =
        embedding(*engine, {prompt.begin(), prompt.begin() + static_cast<std::ptrdiff_t>(n)}, Pooling::kLast);
    std::vector<double> direction(last.begin(), last.end());
    for (const auto& earlier : basis) take_away(direction, earlier);
    const double squares = std::inner_product(direction.begin(), direction.end(), direction.begin(), 0.0);
    ASSERT_GT(squares, 1e-6);
    for (double& value : direction) value /= std::sqrt(squares);
    if (n == prompt.size()) {
      const double along = std::inner_product(rest.begin(), rest.end(), direction.begin(), 0.0);
      EXPECT_GT(along, 0.01) << "the last token counts";
    }
    basis.push_back(std::move(direction));
  }
  for (const auto& direction : basis) take_away(rest, direction);
  EXPECT_LT(std::sqrt(std::inner_product(rest.begin(), rest.end(), rest.begin(), 0.0)), 1e-5);
}

TEST_P(Embedding, OfOneTokenIsThatOfItsLast) {
  const auto engine = load(config(GetParam()));
  ASSERT_NE(engine, nullptr);
  EXPECT_EQ(embedding(*engine, {5}, Pooling::kMean), embedding(*engine, {5}, Pooling::kLast));
  EXPECT_NE(embedding(*engine, {5, 9}, Pooling::kMean), embedding(*engine, {5, 9}, Pooling::kLast));
}

TEST_P(Embedding, NeitherDisturbsOthersNorIsDisturbed) {
  const auto engine = load(config(GetParam()));
  ASSERT_NE(engine, nullptr);
  const auto prompts = random_prompts(4, 20, 90, engine->model_info().vocab_size, 9);
  Request scored = embedding_request(prompts[1], Pooling::kNone);
  scored.sampling.prompt_logprobs = 1;
  const std::vector<Request> requests = {embedding_request(prompts[0], Pooling::kMean), scored,
                                         embedding_request(prompts[2], Pooling::kLast),
                                         greedy_request(prompts[3], 20)};
  const std::vector<Answer> together = generate(*engine, requests);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const Answer alone = generate(*engine, {requests[i]})[0];
    EXPECT_EQ(together[i].error, "");
    EXPECT_EQ(together[i].embedding, alone.embedding);
    EXPECT_EQ(together[i].token_ids, alone.token_ids);
    ASSERT_EQ(together[i].prompt_logprobs.size(), alone.prompt_logprobs.size());
    for (std::size_t t = 0; t < alone.prompt_logprobs.size(); ++t) {
      EXPECT_EQ(together[i].prompt_logprobs[t].chosen.logprob, alone.prompt_logprobs[t].chosen.logprob);
    }
  }
  EXPECT_TRUE(together[1].embedding.empty());
  EXPECT_EQ(stats_after(*engine, 8).kv_blocks_used, 0);
}

TEST(EmbeddingRefused, WhereItIsNotOfAPromptAlone) {
  const auto engine = load(config("llama-f32"));
  ASSERT_NE(engine, nullptr);
  const auto error_of = [&](auto&& change) {
    Request request = embedding_request({1, 2, 3}, Pooling::kMean);
    change(request);
    return generate(*engine, {std::move(request)})[0].error;
  };
  EXPECT_EQ(error_of([](Request&) {}), "");
  EXPECT_EQ(error_of([](Request& r) { r.sampling.max_tokens = 3; }), "pooling: max_tokens must be 0, is 3");
  EXPECT_EQ(error_of([](Request& r) { r.sampling.max_tokens.reset(); }),
            "pooling: max_tokens must be 0, is not given");
  EXPECT_EQ(error_of([](Request& r) { r.sampling.n = 2; }), "pooling: n must be 1, is 2");
  EXPECT_EQ(error_of([](Request& r) { r.sampling.prompt_logprobs = 0; }),
            "pooling: an embedding has no logits, prompt_logprobs must not be given");
}

}  // namespace
}  // namespace kvasir::testing::embedding_test
