// KV policies in the serving path: the engine's own steps make cells coarser, and say how many bytes are
// left.
#include <gtest/gtest.h>

#include <string>

#include "generate.h"

namespace kvasir::kv_policy_test {
namespace {

using testing::Answer;
using testing::generate;
using testing::greedy_request;
using testing::random_prompts;

std::unique_ptr<Engine> load(const char* model, std::int32_t max_chunk_tokens = 32) {
  EngineConfig config;
  config.model_path = std::string(KVASIR_SOURCE_DIR) + "/tests/cases/models/" + model + ".gguf";
  config.num_threads = 2;
  config.kv_cache_tokens = 8192;  // of four sequences: who is set back starts anew
  config.max_chunk_tokens = max_chunk_tokens;
  auto engine = Engine::load(config);
  EXPECT_TRUE(engine) << engine.error().message;
  return engine ? std::move(*engine) : nullptr;
}

std::vector<Request> requests(const Engine& engine, const KvParams& kv) {
  const std::int32_t longest = engine.model_info().max_model_len_tokens - 24;
  std::vector<Request> all;
  for (auto& prompt : random_prompts(4, longest / 2, longest, engine.model_info().vocab_size, 3)) {
    all.push_back(greedy_request(std::move(prompt), 24));
    all.back().kv = kv;
  }
  return all;
}

class KvPolicyInEngine : public ::testing::TestWithParam<const char*> {};

TEST_P(KvPolicyInEngine, AWholeBudgetChangesNoToken) {
  const auto engine = load(GetParam());
  ASSERT_NE(engine, nullptr);
  const std::vector<Answer> exact = generate(*engine, requests(*engine, {}));
  for (const char* policy : {"uniform", "ladder", "h2o"}) {
    const std::vector<Answer> whole = generate(*engine, requests(*engine, {policy, 1.0}));
    for (std::size_t i = 0; i < exact.size(); ++i) {
      EXPECT_EQ(exact[i].error, "");
      EXPECT_EQ(exact[i].token_ids, whole[i].token_ids);
      EXPECT_EQ(whole[i].usage.kv_bytes_share, 1.0);
    }
  }
}

TEST_P(KvPolicyInEngine, ASmallBudgetLeavesFewerBytesAndTheSameAnswerEveryTime) {
  const auto engine = load(GetParam());
  ASSERT_NE(engine, nullptr);
  for (const std::string& policy : kv_policy_names()) {
    if (policy == "none" || policy == "random-prompt") continue;  // which keeps the prompt as it is
    SCOPED_TRACE(policy);
    const std::vector<Answer> coarse = generate(*engine, requests(*engine, {policy, 0.3}));
    if (policy == "k2pv2") {
      EXPECT_EQ(coarse[0].error, "kv_policy: k2pv2 needs statistics of the model's keys; kvasir calibrate-kv makes them");
      continue;
    }
    for (const Answer& answer : coarse) {
      EXPECT_EQ(answer.error, "");
      EXPECT_EQ(answer.token_ids.size(), 24u);
      EXPECT_LT(answer.usage.kv_bytes_share, 0.9);
      EXPECT_GT(answer.usage.kv_bytes_share, 0.1);
      EXPECT_GE(answer.usage.kv_bytes_share_peak, answer.usage.kv_bytes_share);
    }
    Request again = requests(*engine, {policy, 0.3})[0];
    again.use_prefix_cache = false;
    EXPECT_EQ(generate(*engine, {again})[0].token_ids, generate(*engine, {again})[0].token_ids);
  }
}

TEST_P(KvPolicyInEngine, KeepsABudgetInBytes) {
  const auto engine = load(GetParam());
  ASSERT_NE(engine, nullptr);
  std::int64_t bytes_per_token = 0;
  for (const KvGroupInfo& group : engine->model_info().kv_groups) {
    if (group.window_tokens == 0) bytes_per_token += group.bytes_per_token;
  }
  const std::int64_t tokens = engine->model_info().max_model_len_tokens;
  const auto share = [&](std::int64_t budget_bytes) {
    const KvParams kv{.budget_bytes = budget_bytes, .quality = KvQuality::kBestEffort};
    return generate(*engine, {requests(*engine, kv)[0]})[0].usage.kv_bytes_share;
  };
  EXPECT_LT(share(tokens * bytes_per_token / 4), 0.7);
  EXPECT_LE(share(2 * tokens * bytes_per_token), 1.05);
  const double whole = share(1000 * tokens * bytes_per_token);  // of f16's bytes
  EXPECT_GE(whole, 0.75);
  EXPECT_EQ(share(2 * tokens * bytes_per_token), whole);
}

// Eviction after the prompt would leave the peak as it was.
TEST_P(KvPolicyInEngine, LowersThePeakOfAllBytesWhileThePromptIsRead) {
  const auto peak = [](double budget) {
    const auto engine = load(GetParam());
    generate(*engine, {requests(*engine, {.budget = budget, .quality = KvQuality::kBestEffort})[0]});
    return static_cast<double>(engine->stats().kv_bytes_peak);
  };
  EXPECT_LT(peak(0.3), 0.9 * peak(1.0));
}

TEST_P(KvPolicyInEngine, OfExactQualityChangesNothing) {
  const auto engine = load(GetParam());
  ASSERT_NE(engine, nullptr);
  const std::vector<Answer> exact = generate(*engine, requests(*engine, {}));
  const std::vector<Answer> asked =
      generate(*engine, requests(*engine, {.policy = "h2o", .budget = 0.2, .quality = KvQuality::kExact}));
  for (std::size_t i = 0; i < exact.size(); ++i) EXPECT_EQ(exact[i].token_ids, asked[i].token_ids);
}

TEST_P(KvPolicyInEngine, ActsOnceWhereItIsToldTo) {
  const auto engine = load(GetParam());
  ASSERT_NE(engine, nullptr);
  const std::vector<Answer> once =
      generate(*engine, requests(*engine, {.policy = "k3v3", .only_at_tokens = 96}));
  const std::vector<Answer> never =
      generate(*engine, requests(*engine, {.policy = "k3v3", .only_at_tokens = 1 << 20}));
  const std::vector<Answer> exact = generate(*engine, requests(*engine, {}));
  for (std::size_t i = 0; i < exact.size(); ++i) {
    EXPECT_LT(once[i].usage.kv_bytes_share, 1.0);
    EXPECT_EQ(never[i].usage.kv_bytes_share, 1.0);
    EXPECT_EQ(never[i].token_ids, exact[i].token_ids);
  }
}

// Scores of the last chunk's queries alone would depend on where it begins. The ladder has few blocks to
// choose from in so short a prompt, H2O pins none.
TEST_P(KvPolicyInEngine, DoesTheSameWhateverTheChunks) {
  for (const KvParams& kv :
       {KvParams{.budget = 0.35, .only_at_tokens = 96, .is_share_of_present = true},
        KvParams{.policy = "h2o", .budget = 0.75, .only_at_tokens = 96, .is_share_of_present = true}}) {
    const auto logprobs = [&](std::int32_t max_chunk_tokens) {
      const auto engine = load(GetParam(), max_chunk_tokens);
      Request request = requests(*engine, kv)[0];
      request.sampling.prompt_logprobs = 0;
      return generate(*engine, {request})[0].prompt_logprobs;
    };
    const std::vector<PositionLogprobs> small = logprobs(16), large = logprobs(96);
    ASSERT_GT(small.size(), 100u);
    ASSERT_EQ(small.size(), large.size());
    for (std::size_t i = 1; i < small.size(); ++i) {
      EXPECT_EQ(small[i].chosen.logprob, large[i].chosen.logprob);
    }
  }
}

TEST_P(KvPolicyInEngine, WhatOnePolicyLeavesIsNoHitForAnother) {
  const auto engine = load(GetParam());
  ASSERT_NE(engine, nullptr);
  generate(*engine, requests(*engine, {"uniform", 0.3}));
  for (const Answer& answer : generate(*engine, requests(*engine, {})))
    EXPECT_EQ(answer.usage.cached_tokens, 0);
}

struct Asked {
  std::vector<TokenId> token_ids;
  std::vector<float> logprobs;
  std::int32_t num_cached = 0;
  double kv_share = 0.0;

  static Asked of(Engine& engine, std::vector<TokenId> prompt, const KvParams& kv) {
    Request request = greedy_request(std::move(prompt), 24);
    request.kv = kv;
    request.sampling.logprobs = 0;
    const Answer answer = generate(engine, {request})[0];
    EXPECT_EQ(answer.error, "");
    Asked asked{.token_ids = answer.token_ids, .num_cached = answer.usage.cached_tokens, .kv_share = answer.usage.kv_bytes_share};
    for (const PositionLogprobs& position : answer.logprobs) asked.logprobs.push_back(position.chosen.logprob);
    return asked;
  }
  void expect_same_answer(const Asked& other) const {
    EXPECT_EQ(token_ids, other.token_ids);
    EXPECT_EQ(logprobs, other.logprobs);
    EXPECT_EQ(kv_share, other.kv_share);
  }
};

// Of what was computed exactly it takes the chunks up to the first that leaves its budget no room, and the attention
// that they got. What its policy then does leaves the others' cells as they are.
TEST_P(KvPolicyInEngine, AnswersTheSameBehindAPrefixThatAnExactRequestHasCached) {
  constexpr std::int32_t kChunkTokens = 32;
  std::int32_t num_cached = 0;
  for (const char* policy : {"ladder", "ladder-priced", "snapkv", "h2o", "k8v4"}) {
    for (const double budget : {0.25, 0.6}) {
      SCOPED_TRACE(std::string(policy) + " " + std::to_string(budget));
      const KvParams kv{.policy = policy, .budget = budget, .quality = KvQuality::kBestEffort};
      const auto alone = load(GetParam(), kChunkTokens), shared = load(GetParam(), kChunkTokens);
      ASSERT_TRUE(alone != nullptr && shared != nullptr);
      const ModelInfo& model = alone->model_info();
      const std::int32_t length = model.max_model_len_tokens - 24;
      auto prompts = random_prompts(3, length, length, model.vocab_size, 7);
      std::copy_n(prompts[0].begin(), length * 3 / 4, prompts[1].begin());
      const Asked expected = Asked::of(*alone, prompts[1], kv);
      const Asked exact_alone = Asked::of(*alone, prompts[0], {});
      Asked::of(*shared, prompts[2], kv);  // from then on attention is kept
      exact_alone.expect_same_answer(Asked::of(*shared, prompts[0], {}));
      const Asked behind_exact = Asked::of(*shared, prompts[1], kv);
      behind_exact.expect_same_answer(expected);
      EXPECT_EQ(behind_exact.num_cached % kChunkTokens, 0);
      num_cached += behind_exact.num_cached;
      const Asked exact_again = Asked::of(*shared, prompts[0], {});
      exact_alone.expect_same_answer(exact_again);
      EXPECT_GE(exact_again.num_cached, length - 16);
    }
  }
  EXPECT_GE(num_cached, 5 * kChunkTokens);
}

TEST_P(KvPolicyInEngine, RefusesWhatItDoesNotKnow) {
  const auto engine = load(GetParam());
  ASSERT_NE(engine, nullptr);
  const auto refusal = [&](const KvParams& kv) {
    return generate(*engine, {requests(*engine, kv)[0]})[0].error;
  };
  const std::string unknown = refusal({"magic", 0.5});
  EXPECT_TRUE(unknown.starts_with("kv_policy: must be one of none, ladder, ")) << unknown;
  EXPECT_TRUE(unknown.ends_with(", got 'magic'")) << unknown;
  EXPECT_EQ(refusal({.budget = 0.5, .max_lost_share = 2.0}),
            "kv_max_lost_share: must be at least 0 and at most 1, got 2");
  EXPECT_EQ(refusal({"uniform", 0.0}), "kv_budget: must be above 0 and at most 1, got 0");
  EXPECT_EQ(refusal({"uniform", 1.5}), "kv_budget: must be above 0 and at most 1, got 1.5");
  EXPECT_EQ(refusal({.budget_bytes = 2}), "kv_budget: must be at least 4.00 KiB, got 2 B");
}

INSTANTIATE_TEST_SUITE_P(Models, KvPolicyInEngine, ::testing::Values("qwen3-q4_1", "gemma3-q5_0", "gemma4-q4_0"),
                         [](const auto& param_info) {
                           std::string name = param_info.param;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

}  // namespace
}  // namespace kvasir::kv_policy_test
