// Greedy answers do not depend on company: a prompt gives the same tokens, with log-probabilities that are
// the same bit for bit, alone, in a batch, in chunks of any size, preempted, from a cached prefix and on any
// number of threads.
//
// Runs on the tiny models of tests/cases/models with every ISA of the host, and on every golden that is supported
// (40 prompts, so that rows of a step share experts) with every ISA but `ref`. KVASIR_INVARIANCE_MODEL names a
// real model to run instead, KVASIR_INVARIANCE_PROMPTS how many prompts of 16-200 tokens (10 or more:
// fewer do not press each other out of the cache), KVASIR_ISA the kernels.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "generate.h"
#include "goldens.h"
#include "kernels/isa.h"

namespace kvasir::testing::invariance_test {
namespace {

constexpr std::int32_t kNewTokens = 32;
constexpr std::int32_t kGroup = 64;  // sequences that run together

// Ways to compute the same; each takes several liberties at once, as a thousand prompts take minutes.
struct Variation {
  const char* name;
  std::int32_t chunk_tokens;  // 0: as long as they are
  std::int32_t num_threads;
  bool preempts;
};
constexpr Variation kVariations[] = {
    {"in chunks of 1 on 3 threads", 1, 3, false},
    {"in chunks of 7 on 1 thread", 7, 1, false},
    {"in chunks of 64", 64, 2, false},
    {"preempted, on 3 threads", 0, 3, true},
};

struct Case {
  std::string model;
  std::string isa;
  bool fast = false;
  std::int32_t num_prompts = 12;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.model << " on " << (c.isa.empty() ? "the best ISA" : c.isa) << (c.fast ? " in fast mode" : "");
}

std::vector<Case> cases() {
  if (const char* model = std::getenv("KVASIR_INVARIANCE_MODEL")) {
    const char* count = std::getenv("KVASIR_INVARIANCE_PROMPTS");
    return {{.model = model, .isa = "", .num_prompts = count != nullptr ? std::atoi(count) : 12}};
  }
  std::vector<Case> all;
  for (const char* name :
       {"llama-f32", "llama-q4_k", "llama3-bf16", "qwen2-q8_0", "qwen3-q4_1", "qwen3moe-q4_0",
        "gemma3-q5_0", "gemma4-q4_0"}) {
    for (const kernels::Isa& each : kernels::host_isas()) {
      const char* const isa = each.table.isa;
      const std::string path = std::string(KVASIR_SOURCE_DIR) + "/tests/cases/models/" + name + ".gguf";
      // Its heads are as wide as those of real models, which takes `ref` minutes. The goldens have it too.
      if (std::string_view(name) == "gemma4-q4_0" && std::string_view(isa) == "ref") continue;
      all.push_back({path, isa});
      if (std::string_view(name) == "gemma3-q5_0") all.push_back({path, isa, true});
    }
  }
  return all;
}

// They generate nothing: tests/engine/encoder_test.cc.
bool is_encoder(const std::string& golden) {
  const auto contents = read_golden(golden);
  return contents && !contents->embeddings.empty();
}

std::vector<Case> golden_cases() {
  std::vector<Case> all;
  const auto states = read_golden_states();
  if (!states || std::getenv("KVASIR_INVARIANCE_MODEL") != nullptr) return all;
  for (const GoldenState& state : *states) {
    if (!state.gguf_waits_for.empty() || is_encoder(state.name)) continue;
    for (const kernels::Isa& each : kernels::host_isas()) {
      const std::string isa = each.table.isa;
      const std::string model = golden_model_path(state.name, GoldenForm::kGguf);
      if (isa != "ref") all.push_back({.model = model, .isa = isa, .num_prompts = 40});
    }
  }
  return all;
}

// Every second request asks for log-probabilities; the others may search the head for the greatest logit
// alone.
constexpr std::int32_t kTopLogprobs = 3;

bool is_same(const TokenLogprob& a, const TokenLogprob& b) {
  return a.token == b.token &&
         std::bit_cast<std::uint32_t>(a.logprob) == std::bit_cast<std::uint32_t>(b.logprob);
}

bool is_same(const Answer& a, const Answer& b) {
  return a.token_ids == b.token_ids &&
         std::ranges::equal(
             a.logprobs, b.logprobs, [](const PositionLogprobs& one, const PositionLogprobs& other) {
               return is_same(one.chosen, other.chosen) &&
                      std::ranges::equal(one.top, other.top,
                                         [](const auto& x, const auto& y) { return is_same(x, y); });
             });
}

bool has_window(const Engine& engine) {
  return std::ranges::any_of(engine.model_info().kv_groups,
                             [](const KvGroupInfo& group) { return group.window_tokens > 0; });
}

class Invariance : public ::testing::TestWithParam<Case> {
 protected:
  static EngineConfig config() {
    EngineConfig config;
    config.model_path = GetParam().model;
    config.isa = GetParam().isa;
    config.fast = GetParam().fast;
    config.num_threads = 2;
    config.max_num_seqs = kGroup;
    config.max_queued_requests = GetParam().num_prompts;
    config.kv_cache_tokens = 16384;  // a group of the longest prompts with their answers
    config.memory_bytes = 3ll << 30;
    return config;
  }

  static std::unique_ptr<Engine> load(const EngineConfig& config) {
    auto engine = Engine::load(config);
    EXPECT_TRUE(engine) << engine.error().message;
    return engine ? std::move(*engine) : nullptr;
  }

  // Prompts as the engine's vocabulary and context allow.
  static std::vector<Request> requests(const Engine& engine) {
    const std::int32_t longest = std::min(200, engine.model_info().max_model_len_tokens - kNewTokens);
    std::vector<Request> all;
    for (auto& prompt : random_prompts(GetParam().num_prompts, std::min(16, longest), longest,
                                       engine.model_info().vocab_size, 7)) {
      all.push_back(greedy_request(std::move(prompt), kNewTokens));
      if (all.size() % 2 == 0) all.back().sampling.logprobs = kTopLogprobs;
    }
    return all;
  }

  // One request at a time, nothing cached: what every other way must give.
  static std::vector<Answer> solo(Engine& engine) {
    std::vector<Answer> answers;
    for (Request& request : requests(engine)) {
      request.use_prefix_cache = false;
      const std::size_t num_logprobs = request.sampling.logprobs ? kNewTokens : 0;
      answers.push_back(generate(engine, {std::move(request)})[0]);
      EXPECT_EQ(answers.back().error, "");
      EXPECT_EQ(answers.back().logprobs.size(), num_logprobs);
    }
    return answers;
  }

  // Group by group, so that a group's prefixes are still there when it comes again.
  static void expect_batched_and_cached(Engine& engine, std::span<const Answer> expected) {
    const std::vector<Request> all = requests(engine);
    for (std::size_t begin = 0; begin < all.size(); begin += kGroup) {
      const std::size_t count = std::min<std::size_t>(kGroup, all.size() - begin);
      const auto first = all.begin() + static_cast<std::ptrdiff_t>(begin);
      const std::vector<Request> group(first, first + static_cast<std::ptrdiff_t>(count));
      expect_same(generate(engine, group), expected.subspan(begin, count), "batched");
      const std::vector<Answer> cached = generate(engine, group);
      expect_same(cached, expected.subspan(begin, count), "from cached prefixes");
      std::int64_t cached_tokens = 0;
      for (const Answer& answer : cached) cached_tokens += answer.usage.cached_tokens;
      EXPECT_GT(cached_tokens, 0);
    }
  }

  static void expect_same(const std::vector<Answer>& answers, std::span<const Answer> expected,
                          const std::string& how) {
    std::size_t num_different = 0;
    for (std::size_t i = 0; i < answers.size(); ++i) {
      EXPECT_EQ(answers[i].error, "") << how;
      if (!is_same(answers[i], expected[i])) ++num_different;
    }
    EXPECT_EQ(num_different, 0u) << "of " << answers.size() << " prompts, " << how;
  }

  static void expect_the_same_however_it_runs() {
    const auto engine = load(config());
    ASSERT_NE(engine, nullptr);
    const auto expected = solo(*engine);
    expect_batched_and_cached(*engine, expected);
    for (const Variation& variation : kVariations) {
      EngineConfig varied = config();
      varied.max_chunk_tokens = variation.chunk_tokens;
      varied.num_threads = variation.num_threads;
      if (variation.preempts) {  // room for about two sequences: the others are preempted while they grow
        varied.kv_cache_tokens = 512;
        varied.max_num_seqs = 4;
      }
      const auto other = load(varied);
      ASSERT_NE(other, nullptr);
      expect_same(generate(*other, requests(*other)), expected, variation.name);
      // Where layers have a window, what they need is known beforehand and the others find room in what they
      // spare.
      if (!has_window(*other)) {
        EXPECT_EQ(other->stats().num_preemptions > 0, variation.preempts);
      }
    }
  }
};

TEST_P(Invariance, SoloBatchedCachedChunkedPreemptedThreadedAreTheSame) { expect_the_same_however_it_runs(); }

// The other tests here are about requests, whatever the architecture.
class GoldenInvariance : public Invariance {};
TEST_P(GoldenInvariance, SoloBatchedCachedChunkedPreemptedThreadedAreTheSame) {
  expect_the_same_however_it_runs();
}

TEST_P(Invariance, ChoicesShareThePromptAndAgree) {
  const auto engine = load(config());
  ASSERT_NE(engine, nullptr);
  Request request = requests(*engine)[0];
  const std::vector<Answer> one = generate(*engine, {request});
  request.sampling.n = 3;
  const std::vector<Answer> three = generate(*engine, {request});
  ASSERT_EQ(three[0].error, "");
  EXPECT_EQ(three[0].token_ids.size(), 3 * one[0].token_ids.size());
}

TEST_P(Invariance, AttentionScoresAddsUpToOnePerHeadAndLayer) {
  const auto engine = load(config());
  ASSERT_NE(engine, nullptr);
  Request request = requests(*engine)[0];
  const auto plain = generate(*engine, {request});
  request.want_attention_scores = true;
  const auto with_scores = generate(*engine, {request});
  EXPECT_EQ(with_scores[0].token_ids, plain[0].token_ids);
  double total = 0.0;
  for (float score : with_scores[0].attention_scores) {
    EXPECT_GE(score, 0.0f);
    total += score;
  }
  EXPECT_GT(total, 0.5);
  EXPECT_NEAR(total, std::round(total), 1e-3 * std::max(1.0, total));
}

std::string name_of_case(const ::testing::TestParamInfo<Case>& info) {
  // Goldens are all "model.gguf", each in its folder.
  const std::string& path = info.param.model;
  const std::size_t begin = path.ends_with("/model.gguf") ? path.rfind('/', path.rfind('/') - 1)
                                                          : path.rfind('/');
  std::string name = path.substr(begin + 1) + "_" + info.param.isa + (info.param.fast ? "_fast" : "");
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name;
}
INSTANTIATE_TEST_SUITE_P(Models, Invariance, ::testing::ValuesIn(cases()), name_of_case);
INSTANTIATE_TEST_SUITE_P(Goldens, GoldenInvariance, ::testing::ValuesIn(golden_cases()), name_of_case);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenInvariance);  // with KVASIR_INVARIANCE_MODEL

}  // namespace
}  // namespace kvasir::testing::invariance_test
