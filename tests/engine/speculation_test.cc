// Guesses change nothing: tokens and log-probabilities are those of an engine that does not guess, bit for bit.
//
// Runs on tiny models. KVASIR_SPECULATION_MODEL names a real one to run instead.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/draft_heads.h"
#include "generate.h"
#include "io/draft_file.h"
#include "spec/ngram_table.h"

namespace kvasir::testing::speculation_test {
namespace {

constexpr std::int32_t kNewTokens = 120;
constexpr std::size_t kModelPlace = 2, kHeadsPlace = 3, kReplayPlace = 4;  // in kDrafters

struct Setting {
  std::string name;
  KvCacheType kv_type = KvCacheType::kQ12;
  std::int32_t max_num_seqs = 4;
  std::int32_t chunk_tokens = 0;
  std::int64_t kv_cache_tokens = 4096;
  std::int32_t max_num_batched_tokens = 0;
};

std::vector<Setting> settings() {
  return {{.name = "plain"},
          {.name = "one at a time", .max_num_seqs = 1},
          {.name = "chunks of 16", .kv_type = KvCacheType::kF16, .chunk_tokens = 16},
          {.name = "preempted", .kv_type = KvCacheType::kF32, .max_num_seqs = 8, .kv_cache_tokens = 640},
          {.name = "small steps", .max_num_batched_tokens = 24},
          {.name = "many", .max_num_seqs = 16}};
}

std::string real_model() {
  const char* const path = std::getenv("KVASIR_SPECULATION_MODEL");
  return path == nullptr ? "" : path;
}

std::string path_of(const std::string& model) {
  return std::string(KVASIR_SOURCE_DIR) + "/tests/cases/models/" + model + ".gguf";
}

// `draft_model`: empty for none.
std::unique_ptr<Engine> engine_of(const std::string& model, const Setting& setting, bool speculates,
                                  const std::string& draft_model = {}, DraftRule rule = DraftRule::kMatch,
                                  const std::string& draft_heads = {}) {
  EngineConfig config;
  config.model_path = real_model().empty() ? path_of(model) : real_model();
  if (speculates && !draft_model.empty()) config.draft_model_path = path_of(draft_model);
  config.draft_rule = rule;
  config.draft_heads_path = draft_heads;
  config.num_threads = 2;
  config.kv_cache_type = setting.kv_type;
  config.max_num_seqs = setting.max_num_seqs;
  config.max_chunk_tokens = setting.chunk_tokens;
  config.kv_cache_tokens = setting.kv_cache_tokens;
  config.max_num_batched_tokens = setting.max_num_batched_tokens;
  config.speculates = speculates;
  auto engine = Engine::load(config);
  EXPECT_TRUE(engine) << engine.error().message;
  return *std::move(engine);
}

// Texts that repeat themselves, with all kinds of parameters.
std::vector<Request> requests() {
  std::vector<Request> all;
  for (int i = 0; i < 20; ++i) {
    std::vector<TokenId> prompt;
    for (int j = 0; j < 24 + 7 * i; ++j)
      prompt.push_back(static_cast<TokenId>(4 + (j % (3 + i)) * (i + 2) % 90));
    Request request = greedy_request(std::move(prompt), kNewTokens - i);
    SamplingParams& sampling = request.sampling;
    sampling.logprobs = i % 3;
    sampling.ignore_eos = i % 4 == 0;
    sampling.seed = static_cast<std::uint64_t>(i);
    if (i % 2 == 1) sampling.temperature = i % 4 == 1 ? 0.3f : 1.0f;
    if (i % 5 == 1) sampling.repetition_penalty = 1.05f;
    if (i % 5 == 2) sampling.logit_bias = {{7, 2.0f}, {9, -3.0f}};
    if (i % 5 == 3) sampling.top_k = 8, sampling.min_p = 0.02f;
    if (i % 5 == 4) sampling.frequency_penalty = 0.1f, sampling.top_p = 0.9f;
    if (i % 6 == 5) sampling.min_tokens = 40;
    if (i % 7 == 6) sampling.stop_token_ids = {21, 33};
    if (i % 3 == 2) request.kv = {.budget = 0.5, .quality = KvQuality::kExact};
    all.push_back(std::move(request));
  }
  return all;
}

// Most guesses come from tokens that were drawn by lot, so nearly all are wrong.
std::vector<Request> misled_requests() {
  std::vector<Request> all = requests();
  std::mt19937 random(1);
  for (Request& request : all) {
    for (int i = 0; i < 8000; ++i) request.predicted_token_ids.push_back(static_cast<TokenId>(random() % 100));
  }
  return all;
}

// Forms whose answers repeat themselves, so that there is something to guess; some leave single tokens no choice.
std::vector<Request> guided_requests() {
  std::vector<Request> all = requests();
  for (std::size_t i = 0; i < all.size(); ++i) {
    Request& request = all[i];
    switch (i % 5) {
      case 0: request.guide = Guide{.kind = Guide::Kind::kRegex, .text = "([ab]{1,3}-[0-9];){4,200}"}; break;
      case 1:
        request.guide = Guide{.text = R"({"type":"array","minItems":3,"items":{"enum":["left","right",{"name":1}]}})",
                              .is_compact = true};
        break;
      case 2: request.guide = Guide{.kind = Guide::Kind::kGbnf, .text = R"(root ::= ("yes " | "no ")+ "end")"}; break;
      case 3: request.sampling.allowed_token_ids = {5, 6, 7, 8, 9, 11, 13}; break;
      default:
        request.guide = Guide{.text = R"({"type":"object","additionalProperties":{"type":"boolean"},"minProperties":4})"};
    }
    request.sampling.stop_token_ids.clear();
    request.sampling.logit_bias.clear();
  }
  return all;
}

void expect_same(const Answer& guessed, const Answer& plain) {
  EXPECT_EQ(guessed.error, "");
  EXPECT_EQ(guessed.token_ids, plain.token_ids);
  EXPECT_EQ(guessed.finish_reason, plain.finish_reason);
  EXPECT_EQ(guessed.usage.completion_tokens, plain.usage.completion_tokens);
  EXPECT_EQ(guessed.usage.forced_tokens, plain.usage.forced_tokens);
  ASSERT_EQ(guessed.logprobs.size(), plain.logprobs.size());
  for (std::size_t i = 0; i < plain.logprobs.size(); ++i) {
    EXPECT_EQ(std::bit_cast<std::uint32_t>(guessed.logprobs[i].chosen.logprob),
              std::bit_cast<std::uint32_t>(plain.logprobs[i].chosen.logprob));
    ASSERT_EQ(guessed.logprobs[i].top.size(), plain.logprobs[i].top.size());
    for (std::size_t j = 0; j < plain.logprobs[i].top.size(); ++j) {
      EXPECT_EQ(guessed.logprobs[i].top[j].token, plain.logprobs[i].top[j].token);
    }
  }
}

class Speculation : public ::testing::TestWithParam<const char*> {
 protected:
  // With guesses as without, whatever the setting.
  void compare(std::vector<Request> (*make_requests)(), std::int64_t least_right = 20, const std::string& draft_model = {},
               DraftRule rule = DraftRule::kMatch) {
    std::int64_t num_guesses = 0, num_right = 0, num_by_model = 0;
    for (const Setting& setting : settings()) {
      SCOPED_TRACE(setting.name);
      const auto plain = engine_of(GetParam(), setting, false), guessing = engine_of(GetParam(), setting, true, draft_model, rule);
      for (int round = 0; round < 2; ++round) {  // the second finds its prompts cached
        const std::vector<Answer> wanted = generate(*plain, make_requests());
        const std::vector<Answer> answers = generate(*guessing, make_requests());
        for (std::size_t i = 0; i < wanted.size(); ++i) {
          SCOPED_TRACE(i);
          expect_same(answers[i], wanted[i]);
        }
      }
      EXPECT_EQ(plain->stats().num_draft_tokens, 0);
      const EngineStats stats = stats_after(*guessing, 2 * std::ssize(make_requests()));
      num_guesses += stats.num_draft_tokens;
      num_right += stats.num_draft_tokens_accepted;
      num_by_model += stats.drafts_by.at(kModelPlace).num_drafted;
    }
    RecordProperty("num_guesses", std::to_string(num_guesses));
    RecordProperty("num_right", std::to_string(num_right));
    EXPECT_GT(num_guesses, 100) << "or nothing was tested";
    EXPECT_GE(num_right, least_right);
    EXPECT_GE(num_guesses, num_right);
    EXPECT_EQ(num_by_model > 0, !draft_model.empty());
  }
};

TEST_P(Speculation, ChangesNoTokenAndNoLogProbability) { compare(requests); }

TEST_P(Speculation, ChangesNothingWhereGuessesAreWrong) { compare(misled_requests, 0); }

TEST_P(Speculation, ChangesNothingUnderGuides) { compare(guided_requests); }

TEST_P(Speculation, GuessesNothingForRequestsThatSaySo) {
  const auto engine = engine_of(GetParam(), settings().front(), true);
  std::vector<Request> asked = requests();
  for (Request& request : asked) request.speculates = false;
  const std::vector<Answer> quiet = generate(*engine, asked);
  EXPECT_EQ(stats_after(*engine, std::ssize(asked)).num_draft_tokens, 0);
  const std::vector<Answer> guessed = generate(*engine, requests());
  EXPECT_GT(stats_after(*engine, 2 * std::ssize(asked)).num_draft_tokens, 0);
  for (std::size_t i = 0; i < quiet.size(); ++i) expect_same(guessed[i], quiet[i]);
}

// Requests whose own answers are guessed, each token right with this probability.
TEST_P(Speculation, ChangesNothingWhereAnswersAreReplayed) {
  std::int64_t num_guesses = 0, num_right = 0;
  for (const Setting& setting : settings()) {
    SCOPED_TRACE(setting.name);
    const auto plain = engine_of(GetParam(), setting, false), guessing = engine_of(GetParam(), setting, true);
    const std::vector<Answer> wanted = generate(*plain, requests());
    for (const double share_right : {1.0, 0.5, 0.0}) {  // wrong ones send the gate to sleep
      SCOPED_TRACE(share_right);
      std::vector<Request> asked = requests();
      std::mt19937 random(7);
      std::uniform_real_distribution<double> draw;
      for (std::size_t i = 0; i < asked.size(); ++i) {
        asked[i].replayed_token_ids = wanted[i].token_ids;
        for (TokenId& token : asked[i].replayed_token_ids) {
          if (draw(random) >= share_right) token = token == 5 ? 6 : 5;
        }
      }
      const std::vector<Answer> answers = generate(*guessing, asked);
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        SCOPED_TRACE(i);
        expect_same(answers[i], wanted[i]);
      }
    }
    const EngineStats stats = stats_after(*guessing, 3 * std::ssize(requests()));
    num_guesses += stats.drafts_by.at(kReplayPlace).num_drafted;
    num_right += stats.drafts_by.at(kReplayPlace).num_accepted;
    EXPECT_EQ(stats.num_draft_tokens, stats.drafts_by.at(kReplayPlace).num_drafted) << "there are no other guesses";
  }
  EXPECT_GT(num_right, 50) << "or nothing was tested";
  EXPECT_GT(num_guesses - num_right, 50);
}

// A drafter of random tokens that is sure of each.
TEST_P(Speculation, ChangesNothingWithHeadsThatKnowNothing) {
  const auto plain = engine_of(GetParam(), settings().front(), false);
  std::mt19937 random(3);
  std::vector<spec::NgramTable::Entry> entries;
  const std::int32_t vocab_size = plain->model_info().vocab_size;
  for (TokenId token = 0; token < vocab_size; ++token) {
    const auto guess = static_cast<TokenId>(random() % static_cast<std::uint32_t>(vocab_size));
    entries.push_back({.context = spec::NgramTable::hash_of(std::vector{token}), .guess = {.token = guess, .chance = 0.95}});
  }
  const spec::NgramTable table = spec::NgramTable::of_entries(1, entries);
  const std::string path = ::testing::TempDir() + "kvasir-heads-" + GetParam() + ".draft";
  ASSERT_TRUE(io::write_draft_file(path, {.base_tokens = tokens_hash(plain->tokenizer()),
                                          .vocab_size = vocab_size,
                                          .order = 1,
                                          .words = {table.words().begin(), table.words().end()},
                                          .held_out_tokens = 1}));
  std::int64_t num_guesses = 0;
  for (const Setting& setting : settings()) {
    SCOPED_TRACE(setting.name);
    const auto exact = engine_of(GetParam(), setting, false);
    const auto guessing = engine_of(GetParam(), setting, true, {}, DraftRule::kMatch, path);
    for (auto* const make_requests : {requests, guided_requests}) {
      const std::vector<Answer> wanted = generate(*exact, make_requests()), answers = generate(*guessing, make_requests());
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        SCOPED_TRACE(i);
        expect_same(answers[i], wanted[i]);
      }
    }
    num_guesses += stats_after(*guessing, 2 * std::ssize(requests())).drafts_by.at(kHeadsPlace).num_drafted;
  }
  EXPECT_GT(num_guesses, 100) << "or nothing was tested";
  EXPECT_EQ(std::remove(path.c_str()), 0);
}

TEST(SpeculationHeads, AreOfTheModelsTokens) {
  const std::string path = ::testing::TempDir() + "kvasir-heads-other.draft";
  ASSERT_TRUE(io::write_draft_file(path, {.base_name = "another", .base_tokens = 5, .vocab_size = 3, .order = 1,
                                          .words = {0, 0}, .held_out_tokens = 1}));
  EngineConfig config;
  config.model_path = path_of("llama-f32");
  config.speculates = true;
  config.draft_heads_path = path;
  const auto engine = Engine::load(config);
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().kind, ErrorKind::kBadFile);
  EXPECT_EQ(engine.error().message, path + ": it was made of another, whose tokens are not this model's");
  EXPECT_EQ(std::remove(path.c_str()), 0);
}

// The model guesses for itself, so it is right where the answer is greedy.
TEST_P(Speculation, ChangesNothingWithADraftModel) { compare(requests, 20, GetParam()); }

TEST_P(Speculation, ChangesNothingUnderGuidesWithADraftModel) { compare(guided_requests, 20, GetParam()); }

// Its weights are others, so it is seldom right.
TEST_P(Speculation, ChangesNothingWithABadDraftModel) {
  const std::map<std::string_view, std::string> others = {{"llama-f32", "qwen3moe-q4_0"},
                                                          {"llama-q4_k", "gemma4-q4_0"},
                                                          {"qwen3moe-q4_0", "llama-f32"},
                                                          {"gemma3-q5_0", "llama-q4_k"},
                                                          {"gemma4-q4_0", "gemma3-q5_0"}};
  compare(requests, 0, others.at(GetParam()));
}

// All requests have a seed or are greedy.
TEST_P(Speculation, ResidualSamplingLeavesRequestsWithASeedAlone) {
  compare(requests, 20, GetParam(), DraftRule::kResidual);
}

std::vector<Request> without_seeds(std::vector<Request> all) {
  for (Request& request : all) {
    request.sampling.seed.reset();
    request.sampling.temperature = 1.0f;
  }
  return all;
}

// The model guesses for itself, so that a guess is wrong only where rounding or a guide's end says so.
TEST_P(Speculation, ResidualSamplingEndsAnswersAsTheyHaveTo) {
  std::int64_t num_guesses = 0, num_right = 0;
  for (const Setting& setting : settings()) {
    SCOPED_TRACE(setting.name);
    const auto engine = engine_of(GetParam(), setting, true, GetParam(), DraftRule::kResidual);
    for (auto* const make_requests : {requests, guided_requests, requests, guided_requests}) {
      const std::vector<Request> asked = without_seeds(make_requests());
      const std::vector<Answer> answers = generate(*engine, asked);
      for (std::size_t i = 0; i < answers.size(); ++i) {
        SCOPED_TRACE(i);
        const SamplingParams& sampling = asked[i].sampling;
        EXPECT_EQ(answers[i].error, "");
        EXPECT_LE(std::ssize(answers[i].token_ids), sampling.max_tokens);
        if (answers[i].finish_reason == FinishReason::kLength) {
          EXPECT_EQ(std::ssize(answers[i].token_ids), sampling.max_tokens);
        }
        EXPECT_EQ(answers[i].logprobs.size(), sampling.logprobs ? answers[i].token_ids.size() : 0);
        const std::vector<TokenId>& allowed = sampling.allowed_token_ids;
        for (const TokenId token : answers[i].token_ids) {
          EXPECT_TRUE(allowed.empty() || std::ranges::find(allowed, token) != allowed.end());
        }
      }
    }
    const EngineStats stats = stats_after(*engine, 4 * std::ssize(requests()));
    num_guesses += stats.drafts_by.at(kModelPlace).num_drafted;
    num_right += stats.drafts_by.at(kModelPlace).num_accepted;
  }
  RecordProperty("num_guesses", std::to_string(num_guesses));
  RecordProperty("num_right", std::to_string(num_right));
  EXPECT_GT(num_guesses, 30) << "or nothing was tested";
  EXPECT_GT(num_right, num_guesses * 8 / 10);
}

TEST(SpeculationModel, ADraftModelHasTheModelsTokens) {
  EngineConfig config;
  config.model_path = path_of("llama-f32");
  config.draft_model_path = path_of("gemma3-q5_0");
  config.speculates = true;
  const auto engine = Engine::load(config);
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().kind, ErrorKind::kUsage);
  EXPECT_EQ(engine.error().message,
            "draft model: its tokens are not the model's: token 0 is \"<pad>\" there and \"<|endoftext|>\" in the model");
}

INSTANTIATE_TEST_SUITE_P(Models, Speculation,
                         ::testing::Values("llama-f32", "llama-q4_k", "qwen3moe-q4_0", "gemma3-q5_0",
                                           "gemma4-q4_0"));

}  // namespace
}  // namespace kvasir::testing::speculation_test
