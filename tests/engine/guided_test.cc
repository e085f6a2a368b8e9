// Answers under a guide: they are texts of it, and the same alone, in a batch, as one of several choices, in chunks,
// preempted, from a cached prefix, under a KV policy that need not act, and with a guide that was used before.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <future>
#include <memory>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "generate.h"
#include "text/tokenizer.h"

namespace kvasir::testing::guided_test {
namespace {

constexpr std::int32_t kNewTokens = 48;

// Guides whose texts are easy to check, and how.
struct Form {
  Guide guide;
  std::string texts;  // as a regular expression
};

std::vector<Form> forms() {
  return {
      {{.kind = Guide::Kind::kRegex, .text = "[a-z]{3,9}( [a-z]+)*"}, "[a-z]{3,9}( [a-z]+)*"},
      {{.kind = Guide::Kind::kRegex, .text = "[0-9]{40}"}, "[0-9]{40}"},
      {{.kind = Guide::Kind::kChoice, .choices = {"yes", "yesterday", "no"}}, "yes|yesterday|no"},
      {{.text = R"({"type":"array","items":{"type":"boolean"},"minItems":2,"maxItems":3})"},
       R"(\[\s*(true|false)(\s*,\s*(true|false)){1,2}\s*\])"},
      {{.text = R"({"type":"integer","minimum":-20,"maximum":4000})"}, "-?[0-9]{1,4}"},
      {{.text = R"({"enum":["a","b",1,null]})"}, "\"a\"|\"b\"|1(\\.0+)?|null"},
  };
}

class Guided : public ::testing::Test {
 protected:
  static EngineConfig config() {
    return {.model_path = std::string(KVASIR_SOURCE_DIR) + "/tests/cases/models/llama-f32.gguf",
            .num_threads = 2,
            .max_num_seqs = 64,
            .memory_bytes = 1ll << 30,
            .kv_cache_tokens = 16384};
  }
  static std::unique_ptr<Engine> load(const EngineConfig& config) {
    auto engine = Engine::load(config);
    EXPECT_TRUE(engine) << engine.error().message;
    return engine ? std::move(*engine) : nullptr;
  }

  // Greedy and sampled ones, with and without log-probabilities; every fifth without a guide.
  static std::vector<Request> requests(const Engine& engine) {
    const std::vector<Form> all = forms();
    std::vector<Request> requests;
    for (auto& prompt : random_prompts(40, 5, 60, engine.model_info().vocab_size, 11)) {
      const std::size_t i = requests.size();
      Request& request = requests.emplace_back(greedy_request(std::move(prompt), kNewTokens));
      request.sampling.ignore_eos = i % 7 == 0;
      request.sampling.temperature = i % 2 == 0 ? 0.0f : 1.5f;
      request.sampling.seed = 100 + i;
      if (i % 3 == 0) request.sampling.logprobs = 2;
      if (i % 4 == 1) request.sampling.repetition_penalty = 1.3f;
      if (i % 5 != 4) request.guide = all[i % all.size()].guide;
    }
    return requests;
  }
  static std::vector<Answer> solo(Engine& engine) {
    std::vector<Answer> answers;
    for (Request& request : requests(engine)) {
      request.use_prefix_cache = false;
      answers.push_back(generate(engine, {std::move(request)})[0]);
    }
    return answers;
  }
  static std::string text_of(const Engine& engine, std::vector<TokenId> tokens) {
    const auto& ends = engine.tokenizer()->vocab().end_of_generation();
    if (!tokens.empty() && std::ranges::find(ends, tokens.back()) != ends.end()) tokens.pop_back();
    std::string text;
    for (const TokenId token : tokens) text += engine.tokenizer()->decode_token(token);
    return text;
  }
  static void expect_same(const std::vector<Answer>& answers, const std::vector<Answer>& expected,
                          const std::string& how) {
    ASSERT_EQ(answers.size(), expected.size());
    for (std::size_t i = 0; i < answers.size(); ++i) {
      EXPECT_EQ(answers[i].error, "") << how << ", " << i;
      EXPECT_EQ(answers[i].token_ids, expected[i].token_ids) << how << ", " << i;
      EXPECT_EQ(answers[i].finish_reason, expected[i].finish_reason) << how << ", " << i;
      ASSERT_EQ(answers[i].logprobs.size(), expected[i].logprobs.size()) << how << ", " << i;
      for (std::size_t j = 0; j < answers[i].logprobs.size(); ++j) {
        EXPECT_EQ(std::bit_cast<std::uint32_t>(answers[i].logprobs[j].chosen.logprob),
                  std::bit_cast<std::uint32_t>(expected[i].logprobs[j].chosen.logprob))
            << how << ", " << i;
      }
    }
  }
};

TEST_F(Guided, FinishedAnswersAreTextsOfTheGuide) {
  const auto engine = load(config());
  ASSERT_NE(engine, nullptr);
  const std::vector<Form> all = forms();
  const std::vector<Answer> answers = generate(*engine, requests(*engine));
  int num_finished = 0;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    EXPECT_EQ(answers[i].error, "");
    if (i % 5 == 4 || answers[i].finish_reason != FinishReason::kStop) continue;
    ++num_finished;
    const std::string text = text_of(*engine, answers[i].token_ids);
    const std::string& texts = all[i % all.size()].texts;
    EXPECT_TRUE(std::regex_match(text, std::regex(texts))) << text << " is not of " << texts;
  }
  EXPECT_GT(num_finished, 16);
}

TEST_F(Guided, SoloBatchedCachedChunkedPreemptedAreTheSame) {
  const auto engine = load(config());
  ASSERT_NE(engine, nullptr);
  const std::vector<Answer> expected = solo(*engine);
  expect_same(solo(*engine), expected, "with guides that are known");
  expect_same(generate(*engine, requests(*engine)), expected, "batched");
  expect_same(generate(*engine, requests(*engine)), expected, "from cached prefixes");
  EngineConfig chunked = config();
  chunked.max_chunk_tokens = 3;
  chunked.num_threads = 1;
  const auto other = load(chunked);
  expect_same(generate(*other, requests(*other)), expected, "in chunks");
  EngineConfig small = config();
  small.kv_cache_tokens = 256;
  small.max_num_seqs = 4;
  const auto preempting = load(small);
  expect_same(generate(*preempting, requests(*preempting)), expected, "preempted");
  EXPECT_GT(preempting->stats().num_preemptions, 0);
}

TEST_F(Guided, ChoicesGoTheirOwnWaysUnderOneGuide) {
  const auto engine = load(config());
  ASSERT_NE(engine, nullptr);
  Request request = requests(*engine)[1];
  ASSERT_TRUE(request.guide);
  request.sampling.logprobs.reset();
  std::vector<std::string> texts(4);
  request.sampling.n = 4;
  std::promise<void> done;
  const auto sink = [&](const RequestOutput& output) {
    texts[static_cast<std::size_t>(output.index)] += output.text;
    EXPECT_FALSE(output.error);
    if (output.request_finished) done.set_value();
  };
  ASSERT_TRUE(engine->submit(request, sink));
  done.get_future().wait();
  for (const std::string& text : texts) EXPECT_TRUE(std::regex_match(text, std::regex("[0-9]{1,40}"))) << text;
  EXPECT_NE(texts[0], texts[1]);
}

TEST_F(Guided, EndsWithStopWhereNothingMayFollow) {
  const auto engine = load(config());
  ASSERT_NE(engine, nullptr);
  Request request = greedy_request({3, 4, 5}, kNewTokens);  // ignores the model's end
  request.guide = Guide{.kind = Guide::Kind::kRegex, .text = "[0-9]{7}"};
  request.sampling.min_tokens = kNewTokens;
  const Answer answer = generate(*engine, {request})[0];
  EXPECT_EQ(answer.finish_reason, FinishReason::kStop);
  EXPECT_EQ(text_of(*engine, answer.token_ids).size(), 7u);
}

TEST_F(Guided, AnOnlyTokenIsCertain) {
  const auto engine = load(config());
  ASSERT_NE(engine, nullptr);
  Request request = greedy_request({3, 4, 5}, kNewTokens);
  request.guide = Guide{.kind = Guide::Kind::kChoice, .choices = {std::string("\x01\x02\x03")}};
  request.sampling.logprobs = 3;
  const Answer answer = generate(*engine, {request})[0];
  ASSERT_EQ(answer.error, "");
  for (const PositionLogprobs& position : answer.logprobs) {
    const bool is_certain = position.chosen.logprob == 0.0f;
    EXPECT_EQ(position.top.size() == 1, is_certain);
  }
  EXPECT_EQ(answer.logprobs.back().chosen.logprob, 0.0f);
  EXPECT_EQ(answer.logprobs.back().top.size(), 1u);
}

TEST_F(Guided, AllowedTokensAloneAreChosen) {
  const auto engine = load(config());
  ASSERT_NE(engine, nullptr);
  Request request = greedy_request({3, 4, 5}, kNewTokens);
  request.sampling.temperature = 1.0f;
  request.sampling.allowed_token_ids = {70, 71, 200};
  const Answer answer = generate(*engine, {request})[0];
  EXPECT_EQ(answer.token_ids.size(), static_cast<std::size_t>(kNewTokens));
  for (const TokenId token : answer.token_ids) EXPECT_TRUE(token == 70 || token == 71 || token == 200) << token;
}

TEST_F(Guided, ExcludedTextsDoNotOccur) {
  const auto engine = load(config());
  ASSERT_NE(engine, nullptr);
  Request request = greedy_request({3, 4, 5}, kNewTokens);
  request.sampling.temperature = 1.0f;
  request.sampling.seed = 5;
  const std::string plain = text_of(*engine, generate(*engine, {request})[0].token_ids);
  const auto letter = std::ranges::find_if(plain, [](char c) { return c > ' ' && c < '\x7f'; });
  ASSERT_NE(letter, plain.end());
  request.guide = Guide{.kind = Guide::Kind::kText, .excluded = {std::string(1, *letter), "e", "the"}};
  const Answer answer = generate(*engine, {request})[0];
  EXPECT_EQ(answer.error, "");
  const std::string text = text_of(*engine, answer.token_ids);
  EXPECT_EQ(answer.token_ids.size(), static_cast<std::size_t>(kNewTokens));
  for (const std::string& excluded : request.guide->excluded) EXPECT_FALSE(text.contains(excluded)) << text;
}

TEST_F(Guided, RefusesBeforeAnythingStarts) {
  const auto engine = load(config());
  ASSERT_NE(engine, nullptr);
  const auto error_of = [&](Request request) {
    const auto id = engine->submit(std::move(request), [](const RequestOutput&) { FAIL(); });
    EXPECT_FALSE(id);
    return id ? Error{} : id.error();
  };
  Request request = greedy_request({3, 4, 5}, kNewTokens);
  request.guide = Guide{.text = R"({"properties":{"a":{"$ref":"#/b"}}})", .field = "response_format"};
  EXPECT_EQ(error_of(request).param, "response_format");
  request.guide = Guide{.kind = Guide::Kind::kRegex, .text = "a"};
  request.sampling.max_tokens = 0;
  EXPECT_EQ(error_of(request).param, "max_tokens");
  request.pooling = Pooling::kMean;
  EXPECT_EQ(error_of(request).param, "guide");
  EXPECT_EQ(engine->stats().num_requests_rejected, 3);
}

}  // namespace
}  // namespace kvasir::testing::guided_test
