// Encoders: an embedding is the same alone and in company, on any number of threads and in any step; what they refuse.
#include <gtest/gtest.h>
#include <simdjson.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "generate.h"
#include "goldens.h"
#include "kernels/isa.h"

namespace kvasir::testing::encoder_test {
namespace {

struct Case {
  std::string golden, isa;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const char* golden : {"bert", "nomic-bert", "modern-bert", "gemma-embedding"}) {
    for (const kernels::Isa& each : kernels::host_isas()) all.push_back({golden, each.table.isa});
  }
  return all;
}

EngineConfig config(const std::string& golden, const std::string& isa = "") {
  return {.model_path = golden_model_path(golden, GoldenForm::kGguf),
          .num_threads = 1,
          .memory_bytes = 1ll << 30,
          .isa = isa};
}

std::unique_ptr<Engine> load(const EngineConfig& config) {
  auto engine = Engine::load(config);
  EXPECT_TRUE(engine) << engine.error().message;
  return engine ? std::move(*engine) : nullptr;
}

Request embedding_request(std::vector<TokenId> prompt, Pooling pooling = Pooling::kOfModel) {
  Request request;
  request.prompt_token_ids = std::move(prompt);
  request.sampling.max_tokens = 0;
  request.pooling = pooling;
  return request;
}

std::vector<std::vector<float>> embeddings(Engine& engine, const std::vector<std::vector<TokenId>>& prompts) {
  std::vector<Request> requests;
  for (const auto& prompt : prompts) requests.push_back(embedding_request(prompt));
  std::vector<std::vector<float>> vectors;
  for (const Answer& answer : generate(engine, std::move(requests))) {
    EXPECT_EQ(answer.error, "");
    vectors.push_back(answer.embedding);
  }
  return vectors;
}

std::string error_of(Engine& engine, Request request) {
  return generate(engine, {std::move(request)})[0].error;
}

class Encoder : public ::testing::TestWithParam<Case> {};

// Texts of 1 to 340 tokens: steps are full of some, and longer ones than are left wait for the next. The scalar
// reference is slow, and gets few.
TEST_P(Encoder, GivesEachTextTheSameAloneAndInCompany) {
  const auto [golden, isa] = GetParam();
  const auto alone = load(config(golden, isa));
  ASSERT_NE(alone, nullptr);
  const bool is_slow = isa == "ref";
  const auto prompts = random_prompts(is_slow ? 4 : 16, 1, is_slow ? 60 : 340, alone->model_info().vocab_size,
                                      11);
  std::vector<std::vector<float>> expected;
  for (const auto& prompt : prompts) expected.push_back(embeddings(*alone, {prompt})[0]);
  EXPECT_EQ(embeddings(*alone, prompts), expected);
  for (const std::int32_t num_threads : {1, 2, 3}) {
    for (const std::int32_t num_batched : {0, 352}) {
      EngineConfig varied = config(golden, isa);
      varied.num_threads = num_threads;
      varied.max_num_batched_tokens = num_batched;
      const auto engine = load(varied);
      ASSERT_NE(engine, nullptr);
      EXPECT_EQ(embeddings(*engine, prompts), expected) << num_threads << " threads, " << num_batched;
    }
  }
  EXPECT_EQ(stats_after(*alone, 2 * std::ssize(prompts)).kv_blocks_used, 0);
}

// The first token's state changes with the last token, which a causal model's cannot.
TEST_P(Encoder, SeesLaterTokens) {
  const auto [golden, isa] = GetParam();
  const auto engine = load(config(golden, isa));
  ASSERT_NE(engine, nullptr);
  const Answer one = generate(*engine, {embedding_request({5, 6, 7}, Pooling::kFirst)})[0];
  const Answer other = generate(*engine, {embedding_request({5, 6, 8}, Pooling::kFirst)})[0];
  ASSERT_FALSE(one.embedding.empty());
  EXPECT_NE(one.embedding, other.embedding);
  EXPECT_EQ(one.usage.prompt_tokens, 3);
  EXPECT_EQ(one.usage.completion_tokens, 0);
}

INSTANTIATE_TEST_SUITE_P(Goldens, Encoder, ::testing::ValuesIn(cases()), [](const auto& param_info) {
  std::string name = param_info.param.golden + "_" + param_info.param.isa;
  std::ranges::replace(name, '-', '_');
  return name;
});

TEST(EncoderRequest, IsCutToDimensionsAndBroughtToLengthOneAgain) {
  const auto engine = load(config("gemma-embedding"));
  ASSERT_NE(engine, nullptr);
  EXPECT_EQ(engine->model_info().embedding_size, 32);
  const std::vector<float> whole = generate(*engine, {embedding_request({3, 4, 5})})[0].embedding;
  Request cut = embedding_request({3, 4, 5});
  cut.dimensions = 8;
  const std::vector<float> first = generate(*engine, {std::move(cut)})[0].embedding;
  ASSERT_EQ(first.size(), 8u);
  EXPECT_NEAR(std::inner_product(first.begin(), first.end(), first.begin(), 0.0), 1.0, 1e-6);
  for (std::size_t i = 0; i < first.size(); ++i) EXPECT_NEAR(first[i] * whole[0], whole[i] * first[0], 1e-6);
}

TEST(EncoderRequest, KeepsItsDirectionWhenTheWeightsAreQuantised) {
  for (const char* golden : {"bert", "gemma-embedding"}) {
    EngineConfig bytes = config(golden);
    bytes.quantize = "q8_0";
    const auto exact = load(config(golden)), quantised = load(bytes);
    ASSERT_TRUE(exact != nullptr && quantised != nullptr);
    const auto prompts = random_prompts(1, 60, 60, exact->model_info().vocab_size, 5);
    const std::vector<float> a = embeddings(*exact, prompts)[0], b = embeddings(*quantised, prompts)[0];
    EXPECT_NE(a, b);
    EXPECT_GT(std::inner_product(a.begin(), a.end(), b.begin(), 0.0), 0.999) << golden;
  }
}

TEST(EncoderRequest, TellsTheTextsOfAPairApart) {
  const auto engine = load(config("bert"));
  ASSERT_NE(engine, nullptr);
  EXPECT_EQ(engine->model_info().num_token_types, 2);
  Request zeros = embedding_request({3, 4, 5}), pair = embedding_request({3, 4, 5});
  zeros.prompt_token_types = {0, 0, 0};
  pair.prompt_token_types = {0, 1, 1};
  // In one step with a request that has none.
  const std::vector<Answer> answers = generate(*engine, {embedding_request({3, 4, 5}), zeros, pair});
  EXPECT_EQ(answers[0].embedding, answers[1].embedding);
  EXPECT_NE(answers[0].embedding, answers[2].embedding);
}

TEST(EncoderRequest, IsRefusedWithTheLimitThatItBreaks) {
  const auto engine = load(config("bert"));
  ASSERT_NE(engine, nullptr);
  EXPECT_TRUE(engine->model_info().is_encoder);
  EXPECT_EQ(engine->model_info().max_model_len_tokens, 352);
  EXPECT_EQ(error_of(*engine, greedy_request({3}, 4)),
            "model: it is an encoder, which gives embeddings or scores and generates no text");
  EXPECT_EQ(error_of(*engine, embedding_request(std::vector<TokenId>(352, 3))), "");
  EXPECT_EQ(error_of(*engine, embedding_request(std::vector<TokenId>(353, 3))),
            "context: 353 prompt tokens and 0 completion tokens exceed the limit of 352 tokens");
  EXPECT_EQ(error_of(*engine, embedding_request({3}, Pooling::kRank)),
            "pooling: the model has no classifier, so it gives no scores");
  Request cut = embedding_request({3});
  cut.dimensions = 33;
  EXPECT_EQ(error_of(*engine, cut), "dimensions: must be between 0 (all) and 32, is 33");
  Request typed = embedding_request({3, 4});
  typed.prompt_token_types = {0};
  EXPECT_EQ(error_of(*engine, typed), "token_types: must be as many as the prompt's tokens, 2, are 1");
  typed.prompt_token_types = {0, 2};
  EXPECT_EQ(error_of(*engine, typed), "token_types: must be below 2, as many as the model has, is 2");
}

TEST(EncoderRequest, ContextIsWhatAStepHolds) {
  EngineConfig small = config("bert");
  small.max_num_batched_tokens = 64;
  const auto engine = load(small);
  ASSERT_NE(engine, nullptr);
  EXPECT_EQ(engine->model_info().max_model_len_tokens, 64);
}

// With trained weights: all-MiniLM-L6-v2 beside sentence-transformers, by the types of its weights.
class RealEncoder : public ::testing::TestWithParam<std::pair<const char*, double>> {};

TEST_P(RealEncoder, AgreesWithTheReference) {
  const auto [type, least_cosine] = GetParam();
  EngineConfig real{
      .model_path = std::getenv("KVASIR_ENCODER_MODEL"), .memory_bytes = 1ll << 30, .quantize = type};
  const auto engine = load(real);
  ASSERT_NE(engine, nullptr);
  simdjson::dom::parser parser;
  simdjson::dom::array cases;
  ASSERT_EQ(parser.load(KVASIR_SOURCE_DIR "/tests/cases/embeddings/all-minilm.json").get(cases),
            simdjson::SUCCESS);
  for (const simdjson::dom::element each : cases) {
    const std::string_view text = each["text"];
    std::vector<TokenId> ids;
    for (const std::int64_t id : each["ids"].get_array()) ids.push_back(static_cast<TokenId>(id));
    EXPECT_EQ(engine->encode(text).value(), ids) << text;
    const std::vector<float> vector = embeddings(*engine, {ids})[0];
    double cosine = 0.0;
    std::size_t i = 0;
    for (const double expected : each["vector"].get_array()) cosine += expected * vector.at(i++);
    EXPECT_GE(cosine, least_cosine) << text;
  }
}

std::vector<std::pair<const char*, double>> real_cases() {
  if (std::getenv("KVASIR_ENCODER_MODEL") == nullptr) return {};
  return {{"", 0.9999}, {"q8_0", 0.999}};
}
INSTANTIATE_TEST_SUITE_P(Types, RealEncoder, ::testing::ValuesIn(real_cases()));
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(RealEncoder);  // without the model

}  // namespace
}  // namespace kvasir::testing::encoder_test
