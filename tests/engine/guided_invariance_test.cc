// Guided answers do not depend on company or on what ran before: the same tokens and log-probabilities, bit for bit,
// alone, in a batch, as one of several choices, in chunks, preempted, guessed, from a cached prefix, and with a guide
// that is new or was used before. Under KV policies that drop something they are the same alone and in a batch of the same chunks.
//
// Runs on two tiny models. KVASIR_GUIDED_MODEL names a real one to run instead.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "generate.h"

namespace kvasir::testing::guided_invariance_test {
namespace {

constexpr std::int32_t kNewTokens = 96;
constexpr std::int32_t kNumRequests = 24;

// Names of members and words of an enum are long, so that many tokens are forced in a row.
constexpr const char* kPerson = R"({"type":"object","properties":{
  "full_name":{"type":"string","maxLength":12},
  "occupation_of_the_person":{"enum":["astronomer","archaeologist","bricklayer"]},
  "years_of_experience":{"type":"integer","minimum":0,"maximum":60},
  "is_available_next_week":{"type":"boolean"}},
  "required":["full_name","occupation_of_the_person","years_of_experience","is_available_next_week"],
  "additionalProperties":false})";

std::vector<Guide> guides() {
  return {
      {.text = kPerson, .is_compact = true},
      {.kind = Guide::Kind::kRegex, .text = "The answer is [0-9]{1,3}, and nothing else\\."},
      {.text = R"({"type":"array","items":{"enum":["north-north-east","south-south-west"]},"minItems":2,"maxItems":4})"},
      {.kind = Guide::Kind::kRegex, .text = "[a-z ]{20,40}"},
      {.kind = Guide::Kind::kChoice, .choices = {"unquestionably", "unquestionable", "no"}},
  };
}

// The tokens of one choice.
struct Said {
  std::vector<TokenId> token_ids;
  std::vector<PositionLogprobs> logprobs;
  std::string text;
  std::optional<FinishReason> finish_reason;
};

bool is_same(const TokenLogprob& a, const TokenLogprob& b) {
  return a.token == b.token && a.rank == b.rank &&
         std::bit_cast<std::uint32_t>(a.logprob) == std::bit_cast<std::uint32_t>(b.logprob);
}
bool is_same(const PositionLogprobs& a, const PositionLogprobs& b) {
  return is_same(a.chosen, b.chosen) &&
         std::ranges::equal(a.top, b.top, [](const auto& one, const auto& other) { return is_same(one, other); });
}
bool is_same(const Said& a, const Said& b) {
  return a.token_ids == b.token_ids && a.text == b.text && a.finish_reason == b.finish_reason &&
         std::ranges::equal(a.logprobs, b.logprobs, [](const auto& one, const auto& other) { return is_same(one, other); });
}

// By request and choice.
using Answers = std::vector<std::vector<Said>>;

Answers answers_of(Engine& engine, std::vector<Request> requests) {
  Answers answers;
  std::vector<std::promise<void>> done(requests.size());
  for (const Request& request : requests) answers.emplace_back(static_cast<std::size_t>(request.sampling.n));
  std::vector<Submission> submissions;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    auto sink = [&answer = answers[i], &promise = done[i]](const RequestOutput& output) {
      Said& said = answer[static_cast<std::size_t>(output.index)];
      said.token_ids.insert(said.token_ids.end(), output.token_ids.begin(), output.token_ids.end());
      said.logprobs.insert(said.logprobs.end(), output.logprobs.begin(), output.logprobs.end());
      said.text += output.text;
      if (output.finish_reason) said.finish_reason = output.finish_reason;
      EXPECT_FALSE(output.error) << output.error->message;
      if (output.request_finished) promise.set_value();
    };
    submissions.push_back({std::move(requests[i]), std::move(sink)});
  }
  const auto ids = engine.submit(std::move(submissions));
  EXPECT_TRUE(ids) << ids.error().message;
  if (!ids) return {};
  for (auto& promise : done) promise.get_future().wait();
  return answers;
}

std::vector<std::string> models() {
  if (const char* model = std::getenv("KVASIR_GUIDED_MODEL")) return {model};
  std::vector<std::string> paths;
  for (const char* name : {"llama-f32", "gemma3-q5_0"}) {
    paths.push_back(std::string(KVASIR_SOURCE_DIR) + "/tests/cases/models/" + name + ".gguf");
  }
  return paths;
}

class GuidedInvariance : public ::testing::TestWithParam<std::string> {
 protected:
  static EngineConfig config() {
    return {.model_path = GetParam(), .num_threads = 2, .max_num_seqs = 64, .memory_bytes = 3ll << 30,
            .kv_cache_tokens = 16384};
  }
  static std::unique_ptr<Engine> load(const EngineConfig& config) {
    auto engine = Engine::load(config);
    EXPECT_TRUE(engine) << engine.error().message;
    return engine ? std::move(*engine) : nullptr;
  }

  // Greedy and sampled, with log-probabilities, penalties and without; every sixth has no guide.
  static std::vector<Request> requests(const Engine& engine, const KvParams& kv = {}) {
    const std::vector<Guide> all = guides();
    const std::int32_t longest = std::min(80, engine.model_info().max_model_len_tokens - kNewTokens);
    std::vector<Request> requests;
    for (auto& prompt : random_prompts(kNumRequests, longest / 4, longest, engine.model_info().vocab_size, 23)) {
      const std::size_t i = requests.size();
      Request& request = requests.emplace_back(greedy_request(std::move(prompt), kNewTokens));
      request.kv = kv;
      request.sampling.ignore_eos = i % 7 == 0;
      request.sampling.temperature = i % 2 == 0 ? 0.0f : 1.2f;
      request.sampling.seed = 500 + i;
      if (i % 3 == 0) request.sampling.logprobs = 3;
      if (i % 8 == 1) request.sampling.repetition_penalty = 1.2f;
      if (i % 6 != 5) request.guide = all[i % all.size()];
    }
    return requests;
  }
  static Answers solo(Engine& engine, const KvParams& kv = {}) {
    Answers answers;
    for (Request& request : requests(engine, kv)) {
      request.use_prefix_cache = false;
      answers.push_back(answers_of(engine, {std::move(request)}).at(0));
    }
    return answers;
  }
  static void expect_same(const Answers& answers, const Answers& expected, const char* how) {
    ASSERT_EQ(answers.size(), expected.size()) << how;
    for (std::size_t i = 0; i < answers.size(); ++i) {
      ASSERT_EQ(answers[i].size(), expected[i].size()) << how;
      for (std::size_t j = 0; j < answers[i].size(); ++j) {
        EXPECT_TRUE(is_same(answers[i][j], expected[i][j]))
            << how << ", request " << i << ", choice " << j << ":\n" << answers[i][j].text << "\n" << expected[i][j].text;
      }
    }
  }
};

TEST_P(GuidedInvariance, SoloBatchedChunkedPreemptedCachedColdAndWarmAreTheSame) {
  const auto engine = load(config());
  ASSERT_NE(engine, nullptr);
  const Answers expected = solo(*engine);
  const EngineStats stats = engine->stats();
  EXPECT_GT(stats.num_forced_tokens, 100);
  EXPECT_LT(stats.num_steps, stats.num_generated_tokens);  // forced ones take no step of their own
  expect_same(solo(*engine), expected, "with guides that were used before");
  expect_same(answers_of(*engine, requests(*engine)), expected, "in a batch");
  expect_same(answers_of(*engine, requests(*engine)), expected, "from cached prefixes");
  EngineConfig chunked = config();
  chunked.max_chunk_tokens = 3;
  chunked.num_threads = 1;
  const auto other = load(chunked);
  expect_same(answers_of(*other, requests(*other)), expected, "in chunks, with new guides");
  EngineConfig guessing = config();
  guessing.speculates = true;
  const auto speculating = load(guessing);
  for (const char* how : {"with guesses", "with guesses from earlier answers"}) {
    expect_same(answers_of(*speculating, requests(*speculating)), expected, how);
  }
  EngineConfig small = config();
  small.kv_cache_tokens = 256;
  small.max_num_seqs = 4;
  const auto preempting = load(small);
  expect_same(answers_of(*preempting, requests(*preempting)), expected, "preempted");
  const auto& groups = preempting->model_info().kv_groups;
  const bool has_window = std::ranges::any_of(groups, [](const KvGroupInfo& group) { return group.window_tokens > 0; });
  EXPECT_TRUE(has_window || preempting->stats().num_preemptions > 0);
}

TEST_P(GuidedInvariance, ChoicesAreTheSameAloneAndInABatch) {
  const auto engine = load(config());
  ASSERT_NE(engine, nullptr);
  const Answers one = solo(*engine);
  std::vector<Request> several = requests(*engine);
  several.resize(10);
  for (Request& request : several) request.sampling.n = 3;
  Answers alone;
  for (const Request& request : several) alone.push_back(answers_of(*engine, {request}).at(0));
  for (std::size_t i = 0; i < alone.size(); ++i) EXPECT_TRUE(is_same(alone[i][0], one[i][0])) << i;
  expect_same(answers_of(*engine, several), alone, "several choices in a batch");
}

// A policy that drops something acts behind each chunk of a prompt, so an answer depends on the chunks, guided or not. A
// step that is full cuts prompts where the company leaves room. Here chunks are whole prompts, then 16 tokens of each.
TEST_P(GuidedInvariance, SoloIsBatchedUnderPoliciesThatDropWhereChunksAreTheSame) {
  for (const std::int32_t max_chunk_tokens : {0, 16}) {
    EngineConfig roomy = config();
    roomy.max_num_batched_tokens = 4096;
    roomy.max_chunk_tokens = max_chunk_tokens;
    const auto engine = load(roomy);
    ASSERT_NE(engine, nullptr);
    for (const char* policy : {"ladder", "uniform", "h2o"}) {
      const KvParams kv = {.policy = policy, .budget = 0.4, .quality = KvQuality::kBestEffort};
      const Answers expected = solo(*engine, kv);
      std::vector<Request> together = requests(*engine, kv);
      for (Request& request : together) request.use_prefix_cache = false;
      expect_same(answers_of(*engine, std::move(together)), expected, policy);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, GuidedInvariance, ::testing::ValuesIn(models()), [](const auto& test) {
  return "Model" + std::to_string(test.index);
});

// The pieces of a streamed answer are its text, however many tokens come at once.
TEST(GuidedRuns, EndWithTheAnswerAndCountAsItsTokens) {
  EngineConfig config = {.model_path = std::string(KVASIR_SOURCE_DIR) + "/tests/cases/models/llama-f32.gguf",
                         .num_threads = 2,
                         .memory_bytes = 1ll << 30,
                         .kv_cache_tokens = 4096};
  const auto engine = Engine::load(config);
  ASSERT_TRUE(engine);
  std::string literal;  // of bytes that no longer token has
  for (char byte = 1; byte < 9; ++byte) literal += std::string(4, byte);
  Request request = greedy_request({3, 4, 5}, 200);
  request.guide = Guide{.kind = Guide::Kind::kRegex, .text = literal + "!?"};
  const Said whole = answers_of(**engine, {request}).at(0).at(0);
  EXPECT_TRUE(whole.text.starts_with(literal));
  EXPECT_EQ(whole.finish_reason, FinishReason::kStop);
  const auto num_tokens = static_cast<std::int32_t>(whole.token_ids.size());
  for (const std::int32_t limit : {1, 5, num_tokens - 3}) {
    Request cut = request;
    cut.sampling.max_tokens = limit;
    const Answer answer = generate(**engine, {cut})[0];
    EXPECT_EQ(answer.finish_reason, FinishReason::kLength);
    EXPECT_EQ(answer.usage.completion_tokens, limit);
    EXPECT_EQ(answer.usage.forced_tokens, limit);
    EXPECT_TRUE(std::ranges::equal(answer.token_ids, std::span(whole.token_ids).first(static_cast<std::size_t>(limit))));
  }
  // A stop string counts where the guide's text is whole: there the answer is all of it.
  Request stopped = request;
  stopped.sampling.stop = {"\x02\x03", "\x08"};
  const Said said = answers_of(**engine, {stopped}).at(0).at(0);
  EXPECT_EQ(said.finish_reason, FinishReason::kStop);
  EXPECT_EQ(said.text, whole.text);
  // min_tokens yields to a guide that can only end.
  Request least = request;
  least.guide->text = literal;
  least.sampling.min_tokens = 150;
  least.sampling.logprobs = 2;
  const Said certain = answers_of(**engine, {least}).at(0).at(0);
  EXPECT_EQ(certain.text, literal);
  EXPECT_EQ(certain.finish_reason, FinishReason::kStop);
  ASSERT_EQ(certain.logprobs.size(), certain.token_ids.size());
  for (const PositionLogprobs& position : certain.logprobs) {
    EXPECT_EQ(position.chosen.logprob, 0.0f);
    EXPECT_EQ(position.chosen.rank, 1);
    EXPECT_EQ(position.top.size(), 1u);
  }
}

}  // namespace
}  // namespace kvasir::testing::guided_invariance_test
