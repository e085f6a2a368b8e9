// Answers that are scored again: exact ones diverge by nothing, bad policies are held back, clients see what they asked for.
#include "quality/shadowed_engine.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "generate.h"
#include "kv/testing/recording_journal.h"

namespace kvasir::shadowed_engine_test {
namespace {

using quality::ShadowConfig;
using quality::ShadowedEngine;
using testing::Answer;
using testing::generate;
using testing::random_prompts;

std::unique_ptr<Engine> load(const char* model) {
  EngineConfig config;
  config.model_path = std::string(KVASIR_SOURCE_DIR) + "/tests/cases/models/" + model + ".gguf";
  config.num_threads = 2;
  config.kv_cache_tokens = 8192;
  config.max_chunk_tokens = 32;
  auto engine = Engine::load(config);
  EXPECT_TRUE(engine) << engine.error().message;
  return engine ? std::move(*engine) : nullptr;
}

std::vector<Request> requests(const Engine& engine, const KvParams& kv, std::int32_t count, std::uint32_t seed = 3) {
  const std::int32_t longest = engine.model_info().max_model_len_tokens - 24;
  std::vector<Request> all;
  for (auto& prompt : random_prompts(count, longest / 2, longest, engine.model_info().vocab_size, seed)) {
    Request& request = all.emplace_back();
    request.prompt_token_ids = std::move(prompt);
    request.sampling.temperature = 0.8f;
    request.sampling.seed = all.size();
    request.sampling.max_tokens = 24;
    request.sampling.ignore_eos = true;
    request.kv = kv;
  }
  return all;
}

ShadowStats stats_of(const Engine& engine, std::string_view policy) {
  for (const ShadowStats& stats : engine.stats().shadows) {
    if (stats.promise.policy == policy) return stats;
  }
  return {};
}

class Shadows : public ::testing::TestWithParam<const char*> {
 protected:
  void begin(ShadowConfig config) {
    config.share = 1.0;
    config.warn = [this](const std::string& line) { warnings_.push_back(line); };
    engine_ = std::make_unique<ShadowedEngine>(load(GetParam()), config);
  }
  std::vector<Answer> answer(std::vector<Request> asked) {
    auto answers = generate(*engine_, std::move(asked));
    engine_->finish_scoring();
    return answers;
  }

  std::vector<std::string> warnings_;  // of the scoring thread, read when it rests
  std::unique_ptr<ShadowedEngine> engine_;
};

TEST_P(Shadows, ExactAnswersDivergeByNothingAtAll) {
  begin({});
  for (std::uint32_t seed = 1; seed <= 4; ++seed) answer(requests(*engine_, {}, 8, seed));
  const ShadowStats stats = stats_of(*engine_, "none");
  EXPECT_EQ(stats.num_scored, 32);
  EXPECT_EQ(stats.num_unknown, 0);
  EXPECT_EQ(stats.kl_sum, 0.0);
  EXPECT_EQ(stats.num_tokens, 32 * 24);
  EXPECT_EQ(stats.num_tokens_agreed, stats.num_tokens);
  EXPECT_TRUE(warnings_.empty());
}

TEST_P(Shadows, AnswersAreThoseOfTheEngineInside) {
  const auto plain = load(GetParam());
  for (const int logprobs : {-1, 2}) {
    begin({});
    std::vector<Request> asked = requests(*plain, {.policy = "ladder", .budget = 0.3}, 4);
    for (Request& request : asked) {
      request.use_prefix_cache = false;
      if (logprobs >= 0) request.sampling.logprobs = logprobs;
    }
    const std::vector<Answer> expected = generate(*plain, asked), watched = answer(asked);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(watched[i].token_ids, expected[i].token_ids);
      ASSERT_EQ(watched[i].logprobs.size(), expected[i].logprobs.size());
      for (std::size_t t = 0; t < expected[i].logprobs.size(); ++t) {
        EXPECT_EQ(watched[i].logprobs[t].top.size(), expected[i].logprobs[t].top.size());
        EXPECT_EQ(watched[i].logprobs[t].chosen.logprob, expected[i].logprobs[t].chosen.logprob);
      }
      EXPECT_FALSE(watched[i].usage.kv.is_downgraded);
    }
    EXPECT_GT(stats_of(*engine_, "ladder").kl_sum, 0.0) << "a lossy cache cannot be exact";
  }
}

TEST_P(Shadows, ABadPolicyIsHeldBackAndTheRequestBehindTheBreachIsServedByTheNext) {
  begin({.gate = {.promised_kl_best_effort = 0.001}});
  const KvParams bad = {.policy = "window", .budget = 0.1, .quality = KvQuality::kBestEffort};
  int num_before = 0;
  while (warnings_.empty()) {
    ASSERT_LT(num_before, 200);
    answer(requests(*engine_, bad, 4, static_cast<std::uint32_t>(num_before)));
    num_before += 4;
  }
  EXPECT_NE(warnings_[0].find("window with budgets up to 10% at best_effort is held back"), std::string::npos) << warnings_[0];
  const ShadowStats stats = stats_of(*engine_, "window");
  EXPECT_EQ(stats.state, KvPolicyState::kHeldBack);
  const std::vector<Answer> after = answer(requests(*engine_, bad, 1));
  EXPECT_TRUE(after[0].usage.kv.is_downgraded);
  EXPECT_EQ(stats_of(*engine_, "window").num_scored, stats.num_scored);
  EXPECT_EQ(stats_of(*engine_, "ladder").num_scored, 1);
  EXPECT_EQ(engine_->resume_kv_policy("window").error().kind, ErrorKind::kUsage);
}

TEST_P(Shadows, AJournalHearsOfEachAndOfWhatRanWhenItsPolicyWasHeldBack) {
  kv::RecordingJournal journal;
  begin({.gate = {.promised_kl_best_effort = 0.001}, .journal = &journal});
  std::vector<Request> asked = requests(*engine_, {.policy = "window", .budget = 0.1, .quality = KvQuality::kBestEffort}, 6);
  for (Request& request : asked) request.client_id = "number", request.tenant = "anna";
  std::size_t num_asked = 0;
  while (warnings_.empty()) {
    ASSERT_LT(num_asked, 200u);
    const auto answers = answer(asked);
    num_asked += answers.size();
  }
  const Answer exact = answer(requests(*engine_, {}, 1))[0];
  EXPECT_FALSE(exact.usage.kv.is_downgraded);
  ASSERT_EQ(journal.shadows.size(), num_asked + 1);
  for (std::size_t i = 0; i < num_asked; ++i) {
    const kv::ShadowRecord& of = journal.shadows[i];
    EXPECT_EQ(of.policy, "window");
    EXPECT_EQ(of.quality, "best_effort");
    EXPECT_EQ(of.budget_share, 0.1);
    EXPECT_EQ(of.client_id, "number");
    EXPECT_EQ(of.tenant, "anna");
    EXPECT_EQ(of.num_answer_tokens, 24);
    EXPECT_TRUE(of.is_scored);
    EXPECT_GE(of.kl, 0.0);
    EXPECT_NE(of.request_id, RequestId{});
  }
  EXPECT_EQ(journal.shadows.back().policy, "none");
  EXPECT_EQ(journal.shadows.back().quality, "exact");
  EXPECT_EQ(journal.shadows.back().kl, 0.0);
  EXPECT_EQ(journal.shadows.back().log_ratio, 0.0);
}

TEST_P(Shadows, AnotherModelMayBeTheExactOne) {
  engine_ = std::make_unique<ShadowedEngine>(load(GetParam()), ShadowConfig{.share = 1.0, .gate = {.is_against_another = true}}, load(GetParam()));
  answer(requests(*engine_, {}, 4));
  EXPECT_EQ(stats_of(*engine_, "none").num_scored, 4);
  EXPECT_EQ(stats_of(*engine_, "none").kl_sum, 0.0);
  EXPECT_EQ(engine_->stats().num_requests_finished, 4) << "the other one has read them again";
}

TEST_P(Shadows, EndsWithAnswersLeftToScore) {
  begin({});
  generate(*engine_, requests(*engine_, {}, 8));
  engine_.reset();  // does not hang
}

INSTANTIATE_TEST_SUITE_P(Models, Shadows, ::testing::Values("qwen3-q4_1", "gemma3-q5_0"),
                         [](const auto& param_info) { return std::string(param_info.param).substr(0, param_info.param[0] == 'q' ? 5 : 6); });

}  // namespace
}  // namespace kvasir::shadowed_engine_test
