// Prompts that are only scored run layer by layer in the memory of one layer: the numbers are those of
// running all layers, bit for bit, others do not notice, and it can end at any time.
#include <gtest/gtest.h>

#include <cctype>
#include <cstring>
#include <future>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "generate.h"
#include "kernels/isa.h"

namespace kvasir::testing::prefill_only_test {
namespace {

std::string model_path(const std::string& name) {
  return std::string(KVASIR_SOURCE_DIR) + "/tests/cases/models/" + name + ".gguf";
}

std::unique_ptr<Engine> load(const EngineConfig& config) {
  auto engine = Engine::load(config);
  EXPECT_TRUE(engine) << engine.error().message;
  return engine ? std::move(*engine) : nullptr;
}

Request scoring_request(std::vector<TokenId> prompt) {
  Request request;
  request.prompt_token_ids = std::move(prompt);
  request.sampling.max_tokens = 0;
  request.sampling.prompt_logprobs = 3;
  request.use_prefix_cache = false;
  return request;
}

// A model's numbers for a prompt.
struct Score {
  std::vector<PositionLogprobs> logprobs;
  std::vector<float> logits;  // of all positions in order
};

std::vector<Score> score(Engine& engine, const std::vector<std::vector<TokenId>>& prompts) {
  std::vector<Score> scores(prompts.size());
  std::vector<Request> requests;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    requests.push_back(scoring_request(prompts[i]));
    requests.back().logits_observer = [&score = scores[i]](std::int32_t position,
                                                           std::span<const float> row) {
      EXPECT_EQ(score.logits.size(), static_cast<std::size_t>(position) * row.size());
      score.logits.insert(score.logits.end(), row.begin(), row.end());
    };
  }
  const std::vector<Answer> answers = generate(engine, std::move(requests));
  for (std::size_t i = 0; i < answers.size(); ++i) {
    EXPECT_EQ(answers[i].error, "");
    EXPECT_EQ(answers[i].finish_reason, FinishReason::kLength);
    EXPECT_EQ(answers[i].usage.prompt_tokens, static_cast<std::int32_t>(prompts[i].size()));
    EXPECT_EQ(answers[i].usage.completion_tokens, 0);
    scores[i].logprobs = answers[i].prompt_logprobs;
  }
  return scores;
}

bool same_bits(float a, float b) { return std::memcmp(&a, &b, sizeof(float)) == 0; }

bool is_same(const TokenLogprob& a, const TokenLogprob& b) {
  return a.token == b.token && same_bits(a.logprob, b.logprob) && a.rank == b.rank;
}

bool is_same(const PositionLogprobs& a, const PositionLogprobs& b) {
  return is_same(a.chosen, b.chosen) &&
         std::ranges::equal(a.top, b.top, [](const auto& x, const auto& y) { return is_same(x, y); });
}

void expect_same(const std::vector<Score>& scores, const std::vector<Score>& expected) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_TRUE(std::ranges::equal(scores[i].logits, expected[i].logits, same_bits))
        << "logits of prompt " << i;
    EXPECT_TRUE(std::ranges::equal(scores[i].logprobs, expected[i].logprobs,
                                   [](const auto& a, const auto& b) { return is_same(a, b); }))
        << "log-probabilities of prompt " << i;
  }
}

struct Case {
  std::string model;
  std::string isa;
  bool fast = false;
  KvCacheType kv_cache_type = KvCacheType::kF16;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.model << " on " << c.isa << (c.fast ? " in fast mode" : "");
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const kernels::Isa& each : kernels::host_isas()) {
    const char* const isa = each.table.isa;
    for (const char* name :
         {"llama-f32", "llama-q4_k", "llama3-bf16", "qwen2-q8_0", "qwen3-q4_1", "gemma3-q5_0"}) {
      all.push_back({name, isa});
    }
    all.push_back({"gemma3-q5_0", isa, true});
    all.push_back({"gemma3-q5_0", isa, false, KvCacheType::kF32});
  }
  return all;
}

class PrefillOnly : public ::testing::TestWithParam<Case> {
 protected:
  static EngineConfig config() {
    return {.model_path = model_path(GetParam().model),
            .num_threads = 2,
            .max_num_seqs = 8,
            .memory_bytes = 1ll << 30,
            .kv_cache_tokens = 4096,
            .kv_cache_type = GetParam().kv_cache_type,
            .fast = GetParam().fast,
            .isa = GetParam().isa};
  }
};

TEST_P(PrefillOnly, IsBitEqualToRunningAllLayers) {
  EngineConfig all_layers = config();
  all_layers.prefill_only = false;
  const auto reference = load(all_layers);
  ASSERT_NE(reference, nullptr);
  const ModelInfo& model = reference->model_info();
  auto prompts = random_prompts(6, 1, 40, model.vocab_size, 5);  // short enough to share passes
  for (auto& prompt :
       random_prompts(3, 100, std::min(400, model.max_model_len_tokens), model.vocab_size, 6)) {
    prompts.push_back(std::move(prompt));
  }
  const std::vector<Score> expected = score(*reference, prompts);
  const auto num_requests = static_cast<std::int64_t>(prompts.size());
  EXPECT_EQ(stats_after(*reference, num_requests).hidden_bytes_peak, 0);
  struct Variation {
    std::int32_t chunk_tokens, num_threads, max_num_seqs;
  };
  for (const auto& [chunk_tokens, num_threads, max_num_seqs] :
       {Variation{0, 2, 8}, Variation{1, 1, 8}, Variation{7, 3, 8}, Variation{64, 2, 1}}) {
    SCOPED_TRACE(chunk_tokens);
    EngineConfig varied = config();
    varied.max_chunk_tokens = chunk_tokens;
    varied.num_threads = num_threads;
    varied.max_num_seqs = max_num_seqs;
    const auto engine = load(varied);
    ASSERT_NE(engine, nullptr);
    expect_same(score(*engine, prompts), expected);
    const EngineStats stats = stats_after(*engine, num_requests);
    EXPECT_GT(stats.hidden_bytes_peak, 0);
    EXPECT_EQ(stats.kv_blocks_used, 0);
  }
}

TEST_P(PrefillOnly, HoldsTheKvOfOneLayer) {
  const auto engine = load(config());
  ASSERT_NE(engine, nullptr);
  const ModelInfo& model = engine->model_info();
  const auto prompt = random_prompts(1, 128, 128, model.vocab_size, 1);
  score(*engine, prompt);
  std::int64_t bytes_per_token = 0;
  for (const KvGroupInfo& group : model.kv_groups) bytes_per_token += group.bytes_per_token;
  EXPECT_EQ(stats_after(*engine, 1).kv_bytes_peak, 128 * bytes_per_token / model.num_layers);
}

INSTANTIATE_TEST_SUITE_P(Models, PrefillOnly, ::testing::ValuesIn(cases()), [](const auto& param_info) {
  const Case& c = param_info.param;
  std::string name = c.model + "_" + c.isa + (c.fast ? "_fast" : "") +
                     (c.kv_cache_type == KvCacheType::kF32 ? "_f32" : "");
  for (char& ch : name) ch = std::isalnum(static_cast<unsigned char>(ch)) != 0 ? ch : '_';
  return name;
});

std::unique_ptr<Engine> small_steps(std::int32_t max_chunk_tokens) {
  return load({.model_path = model_path("qwen3-q4_1"),
               .num_threads = 2,
               .memory_bytes = 1ll << 30,
               .kv_cache_tokens = 4096,
               .max_chunk_tokens = max_chunk_tokens});
}

TEST(PrefillOnlyBeside, OthersDecodeBetweenPassesAndGetTheSameTokens) {
  const auto engine = small_steps(16);
  ASSERT_NE(engine, nullptr);
  const auto prompts = random_prompts(3, 16, 32, engine->model_info().vocab_size, 2);
  std::vector<Request> decoding;
  for (const auto& prompt : prompts) decoding.push_back(greedy_request(prompt, 100));
  const std::vector<Answer> alone = generate(*engine, decoding);

  const auto scored = random_prompts(1, 256, 256, engine->model_info().vocab_size, 3);
  const std::vector<Score> expected = score(*engine, scored);
  std::vector<Answer> answers(decoding.size());
  std::vector<std::promise<void>> done(decoding.size() + 1);
  std::vector<Submission> submissions;
  for (std::size_t i = 0; i < decoding.size(); ++i) {
    decoding[i].use_prefix_cache = false;
    submissions.push_back({decoding[i], [&answer = answers[i], &promise = done[i]](RequestOutput output) {
                             answer.token_ids.insert(answer.token_ids.end(), output.token_ids.begin(),
                                                     output.token_ids.end());
                             if (output.request_finished) promise.set_value();
                           }});
  }
  std::size_t num_tokens_meanwhile = 0;  // of the first stream, until the prompt was scored
  Score scored_beside;
  submissions.push_back({scoring_request(scored[0]), [&](RequestOutput output) {
                           scored_beside.logprobs = std::move(output.prompt_logprobs);
                           num_tokens_meanwhile = answers[0].token_ids.size();
                           done.back().set_value();
                         }});
  ASSERT_TRUE(engine->submit(std::move(submissions)));
  for (auto& promise : done) promise.get_future().wait();
  for (std::size_t i = 0; i < answers.size(); ++i) EXPECT_EQ(answers[i].token_ids, alone[i].token_ids);
  expect_same({{scored_beside.logprobs, expected[0].logits}}, expected);
  // 256 tokens in passes of 16 through two layers are 32 steps, each with a token of every stream but for the
  // few in which the streams' own prompts took turns with passes.
  EXPECT_GE(num_tokens_meanwhile, 20u);
  EXPECT_LE(num_tokens_meanwhile, 32u);
}

TEST(PrefillOnlyBeside, WhoWantsNoLogitsTakesNobodysPlace) {
  const auto engine = small_steps(0);
  ASSERT_NE(engine, nullptr);
  const auto prompts = random_prompts(3, 20, 40, engine->model_info().vocab_size, 8);
  const std::vector<Answer> alone = generate(*engine, {scoring_request(prompts[1])});
  const auto row_bytes = stats_after(*engine, 1).hidden_bytes_peak / std::ssize(prompts[1]);
  std::vector<Request> requests;
  for (const auto& prompt : prompts) requests.push_back(scoring_request(prompt));
  requests[0].sampling.prompt_logprobs.reset();
  requests[2].sampling.prompt_logprobs.reset();
  const std::vector<Answer> together = generate(*engine, requests);
  expect_same({{together[1].prompt_logprobs, {}}}, {{alone[0].prompt_logprobs, {}}});
  for (const std::size_t silent : {0, 2}) {
    EXPECT_EQ(together[silent].error, "");
    EXPECT_TRUE(together[silent].prompt_logprobs.empty());
  }
  const auto num_rows = std::ssize(prompts[0]) + std::ssize(prompts[1]) + std::ssize(prompts[2]);
  EXPECT_EQ(stats_after(*engine, 4).hidden_bytes_peak, row_bytes * num_rows);  // they shared passes
}

TEST(PrefillOnlyBeside, EndsWhenItIsCancelledBetweenPasses) {
  const auto engine = small_steps(1);
  ASSERT_NE(engine, nullptr);
  const auto prompts = random_prompts(1, 200, 200, engine->model_info().vocab_size, 4);
  std::promise<void> at_last_layer, is_cancelled, over;
  std::int32_t last_position = -1;
  Answer answer;
  Request request = scoring_request(prompts[0]);
  request.logits_observer = [&](std::int32_t position, std::span<const float>) {
    last_position = position;
    if (position > 0) return;
    at_last_layer.set_value();  // half of the work is done
    is_cancelled.get_future().wait();
  };
  const auto id = engine->submit(std::move(request), [&](RequestOutput output) {
    answer.finish_reason = output.finish_reason;
    over.set_value();
  });
  ASSERT_TRUE(id);
  at_last_layer.get_future().wait();
  engine->cancel(*id);
  is_cancelled.set_value();
  over.get_future().wait();
  EXPECT_EQ(answer.finish_reason, FinishReason::kCancelled);
  EXPECT_EQ(last_position, 0);
  score(*engine, prompts);  // begins anew
  EXPECT_EQ(stats_after(*engine, 2).kv_blocks_used, 0);
  EXPECT_EQ(engine->stats().num_requests_cancelled, 1);
}

TEST(PrefillOnlyBeside, DrainingLetsItFinish) {
  const auto engine = small_steps(1);
  ASSERT_NE(engine, nullptr);
  const auto prompts = random_prompts(1, 200, 200, engine->model_info().vocab_size, 4);
  std::optional<FinishReason> reason;
  ASSERT_TRUE(engine->submit(scoring_request(prompts[0]),
                             [&](RequestOutput output) { reason = output.finish_reason; }));
  engine->drain(60'000);
  EXPECT_EQ(reason, FinishReason::kLength);
}

TEST(PrefillOnlyBeside, WhatKeepsOrChangesKvRunsAllLayers) {
  const auto engine = small_steps(0);
  ASSERT_NE(engine, nullptr);
  const auto prompts = random_prompts(1, 128, 128, engine->model_info().vocab_size, 4);
  Request cached = scoring_request(prompts[0]);
  cached.use_prefix_cache = true;
  Request lossy = scoring_request(prompts[0]);
  lossy.kv = {.policy = "uniform", .budget = 0.5};
  for (const Answer& answer : generate(*engine, {cached, lossy})) EXPECT_EQ(answer.error, "");
  EXPECT_EQ(stats_after(*engine, 2).hidden_bytes_peak, 0);
  const Answer again = generate(*engine, {greedy_request(prompts[0], 1)})[0];
  EXPECT_EQ(again.usage.cached_tokens, 112);  // as the scored prompt left it
  generate(*engine, {scoring_request(prompts[0])});
  EXPECT_GT(stats_after(*engine, 4).hidden_bytes_peak, 0);
}

}  // namespace
}  // namespace kvasir::testing::prefill_only_test
