// Beam searches in the engine: what they find, and that it does not depend on company, memory or seats.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "generate.h"

namespace kvasir::testing::beam_test {
namespace {

using Tokens = std::vector<TokenId>;

std::string tiny_model(const std::string& name) { return std::string(KVASIR_SOURCE_DIR) + "/tests/cases/models/" + name + ".gguf"; }

std::unique_ptr<Engine> load(const std::string& name, std::int64_t kv_cache_tokens = 2048, std::int32_t max_num_seqs = 16,
                             bool prefix_cache = true) {
  EngineConfig config;
  config.model_path = tiny_model(name);
  config.num_threads = 1;
  config.kv_cache_tokens = kv_cache_tokens;
  config.max_num_seqs = max_num_seqs;
  config.max_num_batched_tokens = std::max(32, max_num_seqs);
  config.prefix_cache = prefix_cache;
  config.memory_bytes = std::int64_t{1} << 30;
  auto engine = Engine::load(config);
  EXPECT_TRUE(engine) << engine.error().message;
  return engine ? std::move(*engine) : nullptr;
}

struct Found {
  std::vector<Tokens> answers;  // by index
  Usage usage;
  std::string error;
};

std::future<Found> submit(Engine& engine, Request request) {
  struct State {
    Found found;
    std::promise<Found> promise;
  };
  auto state = std::make_shared<State>();
  state->found.answers.resize(static_cast<std::size_t>(request.sampling.n));
  std::vector<Submission> submissions;
  submissions.push_back({std::move(request), [state](RequestOutput output) {
                           Tokens& tokens = state->found.answers.at(static_cast<std::size_t>(output.index));
                           tokens.insert(tokens.end(), output.token_ids.begin(), output.token_ids.end());
                           state->found.usage = output.usage;
                           if (output.error) state->found.error = output.error->message;
                           if (output.request_finished) state->promise.set_value(std::move(state->found));
                         }});
  auto future = state->promise.get_future();
  if (const auto ids = engine.submit(std::move(submissions)); !ids) {
    state->found.error = ids.error().message;
    state->promise.set_value(std::move(state->found));
  }
  return future;
}

Request beam_request(Tokens prompt, std::int32_t width, std::int32_t max_tokens) {
  Request request = greedy_request(std::move(prompt), max_tokens);
  request.sampling.n = request.sampling.beam_width = width;
  return request;
}

struct Beam {
  Tokens tokens;
  double sum = 0.0;
};

// The log-probabilities behind prompt and tokens, penalties of the tokens said as biases.
std::vector<TokenLogprob> next_of(Engine& engine, const Request& request, const Tokens& tokens) {
  Request next = greedy_request(request.prompt_token_ids, 1);
  next.prompt_token_ids.insert(next.prompt_token_ids.end(), tokens.begin(), tokens.end());
  // A beam's candidates: so many that all slots find one, whatever ends among them.
  next.sampling.logprobs = 2 * request.sampling.beam_width + static_cast<std::int32_t>(request.sampling.stop_token_ids.size());
  next.sampling.repetition_penalty = request.sampling.repetition_penalty;
  std::map<TokenId, int> counts;
  for (const TokenId token : tokens) ++counts[token];
  for (const auto& [token, count] : counts) {
    const float bias = request.sampling.presence_penalty + request.sampling.frequency_penalty * static_cast<float>(count);
    next.sampling.logit_bias.emplace_back(token, -bias);
  }
  const Answer answer = generate(engine, {next})[0];
  EXPECT_EQ(answer.error, "");
  return answer.logprobs.at(0).top;
}

// The search by requests of one token each.
std::vector<Beam> reference(Engine& engine, const Request& request) {
  const SamplingParams& params = request.sampling;
  std::vector<Beam> live = {{}}, ended;
  for (std::int32_t length = 1; length <= *params.max_tokens; ++length) {
    std::vector<Beam> next;
    for (const Beam& beam : live) {
      for (const TokenLogprob& each : next_of(engine, request, beam.tokens)) {
        Beam child{beam.tokens, beam.sum + each.logprob};
        child.tokens.push_back(each.token);
        const bool ends = std::ranges::find(params.stop_token_ids, each.token) != params.stop_token_ids.end();
        if (ends || length == *params.max_tokens) {
          child.sum /= std::pow(length, params.length_penalty);
          ended.push_back(std::move(child));
        } else {
          next.push_back(std::move(child));
        }
      }
    }
    std::ranges::stable_sort(next, std::ranges::greater{}, &Beam::sum);
    next.resize(std::min(next.size(), static_cast<std::size_t>(params.beam_width)));
    live = std::move(next);
  }
  std::ranges::stable_sort(ended, std::ranges::greater{}, &Beam::sum);
  ended.resize(static_cast<std::size_t>(params.n));
  return ended;
}

void expect_found(const Found& found, const std::vector<Beam>& expected) {
  ASSERT_EQ(found.error, "");
  ASSERT_EQ(found.answers.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(found.answers[i], expected[i].tokens) << "answer " << i;
}

TEST(Beam, FindsWhatRequestsOfOneTokenFind) {
  for (const char* name : {"llama-f32", "gemma3-q5_0", "qwen3moe-q4_0"}) {
    SCOPED_TRACE(name);
    const auto engine = load(name);
    ASSERT_NE(engine, nullptr);
    for (const std::int32_t prompt_tokens : {3, 16, 30, 47}) {
      Request request = beam_request(random_prompts(1, prompt_tokens, prompt_tokens, engine->model_info().vocab_size, 5)[0], 3, 20);
      expect_found(submit(*engine, request).get(), reference(*engine, request));
    }
  }
}

TEST(Beam, CountsPenaltiesAndEnds) {
  const auto engine = load("llama-f32");
  Request request = beam_request({1, 2, 3, 4, 5, 6, 7}, 4, 12);
  request.sampling.repetition_penalty = 1.3f;
  request.sampling.presence_penalty = 0.7f;
  request.sampling.frequency_penalty = 0.4f;
  request.sampling.length_penalty = 0.6f;
  const Found first = submit(*engine, request).get();
  expect_found(first, reference(*engine, request));
  // Tokens that answers had in their middle end them now.
  request.sampling.stop_token_ids = {first.answers[0][3], first.answers[1][6]};
  request.sampling.include_stop_str_in_output = true;
  expect_found(submit(*engine, request).get(), reference(*engine, request));
}

TEST(Beam, GivesTheBestOfMoreBeams) {
  const auto engine = load("llama-f32");
  Request request = beam_request({9, 8, 7}, 6, 10);
  const Found all = submit(*engine, request).get();
  request.sampling.n = 2;
  const Found best = submit(*engine, request).get();
  ASSERT_EQ(best.answers.size(), 2u);
  EXPECT_EQ(best.answers[0], all.answers[0]);
  EXPECT_EQ(best.answers[1], all.answers[1]);
  EXPECT_EQ(best.usage.completion_tokens, 20);
  EXPECT_GE(best.usage.search_tokens, 1 + 6 * 9);
}

// Alone, beside others, with a cache for two beams at a time, with fewer seats than beams, without a prefix cache.
TEST(Beam, DoesNotDependOnCompanyMemoryOrSeats) {
  struct Place {
    std::int64_t kv_cache_tokens;
    std::int32_t max_num_seqs;
    bool prefix_cache;
  };
  const auto alone = load("gemma3-q5_0");
  const auto prompts = random_prompts(6, 20, 40, alone->model_info().vocab_size, 11);
  std::vector<std::vector<Tokens>> expected;
  for (const auto& prompt : prompts) expected.push_back(submit(*alone, beam_request(prompt, 4, 30)).get().answers);
  for (const Place& place : {Place{2048, 32, true}, Place{160, 16, true}, Place{2048, 3, true}, Place{2048, 16, false}, Place{128, 3, false}}) {
    SCOPED_TRACE(std::to_string(place.kv_cache_tokens) + " tokens, " + std::to_string(place.max_num_seqs) + " seats");
    const auto engine = load("gemma3-q5_0", place.kv_cache_tokens, place.max_num_seqs, place.prefix_cache);
    std::vector<std::future<Found>> running;
    for (const auto& prompt : prompts) {
      running.push_back(submit(*engine, beam_request(prompt, 4, 30)));
      running.push_back(submit(*engine, greedy_request(prompt, 20)));
    }
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      const Found found = running[2 * i].get();
      EXPECT_EQ(found.error, "");
      EXPECT_EQ(found.answers, expected[i]) << "request " << i;
      EXPECT_EQ(running[2 * i + 1].get().answers, submit(*alone, greedy_request(prompts[i], 20)).get().answers);
    }
  }
}

// The prompt's KV is held once.
TEST(Beam, SharesThePrompt) {
  const auto engine = load("llama-f32", 4096);
  const std::int32_t prompt_tokens = 480, answer_tokens = 48, width = 8;
  const auto prompt = random_prompts(1, prompt_tokens, prompt_tokens, engine->model_info().vocab_size, 3)[0];
  submit(*engine, greedy_request(prompt, 1)).get();
  const double token_bytes = static_cast<double>(engine->model_info().kv_groups[0].bytes_per_token);
  submit(*engine, beam_request(prompt, width, answer_tokens)).get();
  const EngineStats stats = stats_after(*engine, 2);
  const double most = 1.05 * (prompt_tokens + width * answer_tokens + 16.0 * 16) * token_bytes;
  EXPECT_LE(static_cast<double>(stats.kv_bytes_peak), most);
}

TEST(Beam, EndsWhenItIsCancelled) {
  const auto engine = load("llama-f32", 2048, 4);
  std::promise<void> ended;
  std::vector<Submission> submissions;
  submissions.push_back({beam_request({1, 2, 3}, 4, 500), [&](RequestOutput output) {
                           if (output.request_finished) ended.set_value();
                         }});
  const auto ids = engine->submit(std::move(submissions));
  ASSERT_TRUE(ids);
  submit(*engine, greedy_request({4, 5}, 3)).get();
  engine->cancel((*ids)[0]);
  ended.get_future().wait();
  EXPECT_EQ(submit(*engine, beam_request({1, 2, 3}, 4, 5)).get().error, "");
}

TEST(Beam, RefusesWhatDoesNotGoWithIt) {
  const auto engine = load("llama-f32");
  Request request = beam_request({1, 2, 3}, 4, 5);
  request.kv.budget = 0.5;
  EXPECT_NE(submit(*engine, request).get().error.find("use_beam_search: beams share"), std::string::npos);
  request = beam_request({1, 2, 3}, 4, 5);
  request.sampling.n = 5;
  EXPECT_NE(submit(*engine, request).get().error.find("beam_width must be between 5 and 64, got 4"), std::string::npos);
}

}  // namespace
}  // namespace kvasir::testing::beam_test
