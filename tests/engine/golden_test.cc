// Models of every architecture agree with their reference implementation: logits within 1e-3 of the largest, and
// the same greedy tokens, over prompts far beyond their windows. Each golden also proves that it would notice: one
// disturbed tensor of every kind, or one other number of the metadata, must change the logits by more than that.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "generate.h"
#include "gguf_mutation.h"
#include "goldens.h"
#include "kernels/isa.h"

namespace kvasir::testing::golden_test {
namespace {

constexpr double kLimit = 1e-3;  // of the largest magnitude
// Between the two forms of a model. They have the same numbers, but maybe with rows in another order.
constexpr double kFormLimit = 1e-5;

// Keys that say nothing about the arithmetic.
constexpr std::string_view kDescriptions[] = {"context_length", "vocab_size"};

struct Case {
  GoldenState state;
  GoldenForm form;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.state.name << (c.form == GoldenForm::kGguf ? " as GGUF" : " as a folder");
}

std::vector<Case> cases() {
  std::vector<Case> all;
  const auto states = read_golden_states();
  if (!states) return all;  // EachFolderHasItsLine says why
  for (const GoldenState& state : *states) {
    all.push_back({state, GoldenForm::kGguf});
    all.push_back({state, GoldenForm::kFolder});
  }
  return all;
}

EngineConfig config(const std::string& model, const std::string& isa) {
  return {.model_path = model,
          .num_threads = 1,
          .max_num_seqs = 2,
          .memory_bytes = 1ll << 30,
          .kv_cache_tokens = 1024,
          .kv_cache_type = KvCacheType::kF32,
          .isa = isa};
}

std::vector<TokenId> all_tokens(const Golden& golden) {
  std::vector<TokenId> tokens = golden.prompt;
  tokens.insert(tokens.end(), golden.greedy.begin(), golden.greedy.end());
  return tokens;
}

// How far apart they are, as a share of the largest magnitude of `expected`; infinite where sizes differ.
double distance(std::span<const float> got, std::span<const float> expected) {
  if (got.size() != expected.size()) return INFINITY;
  double largest = 0.0, furthest = 0.0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    largest = std::max(largest, std::abs(double{expected[i]}));
    const double difference = std::abs(double{got[i]} - double{expected[i]});
    furthest = std::isnan(difference) ? INFINITY : std::max(furthest, difference);
  }
  return furthest / largest;
}

// Logits at the golden's positions, one after the other; fewer when the request fails.
std::vector<float> logits_of(Engine& engine, const Golden& golden) {
  Request request = greedy_request(all_tokens(golden), 0);
  request.use_prefix_cache = false;
  std::vector<float> logits;
  request.logits_observer = [&logits, &golden](std::int32_t position, std::span<const float> row) {
    if (std::ranges::binary_search(golden.logit_positions, position))
      logits.insert(logits.end(), row.begin(), row.begin() + golden.vocab_size);
  };
  const Answer answer = generate(engine, {std::move(request)})[0];
  return answer.error.empty() ? logits : std::vector<float>{};
}

std::vector<float> embeddings_of(Engine& engine, const Golden& golden) {
  std::vector<float> vectors;
  for (const GoldenEmbedding& expected : golden.embeddings) {
    Request request = greedy_request(expected.prompt, 0);
    request.use_prefix_cache = false;
    request.prompt_token_types = expected.token_types;
    request.pooling = Pooling::kOfModel;
    const Answer answer = generate(engine, {std::move(request)})[0];
    vectors.insert(vectors.end(), answer.embedding.begin(), answer.embedding.end());
  }
  return vectors;
}

// Logits, or an encoder's embeddings one after the other.
std::vector<float> results_of(Engine& engine, const Golden& golden) {
  return golden.embeddings.empty() ? logits_of(engine, golden) : embeddings_of(engine, golden);
}

// Empty when the model does not load.
std::vector<float> results_of(const std::string& model, const Golden& golden) {
  const auto engine = Engine::load(config(model, ""));
  return engine ? results_of(**engine, golden) : std::vector<float>{};
}

std::vector<float> expected_results(const Golden& golden) {
  if (golden.embeddings.empty()) return golden.logits;
  std::vector<float> vectors;
  for (const GoldenEmbedding& each : golden.embeddings)
    vectors.insert(vectors.end(), each.vector.begin(), each.vector.end());
  return vectors;
}

// Empty when model and golden agree, else the first thing that differs.
std::string disagreement(const std::string& model, const std::string& isa, const Golden& golden) {
  const auto engine = Engine::load(config(model, isa));
  if (!engine) return "it does not load: " + engine.error().message;
  const double apart = distance(results_of(**engine, golden), expected_results(golden));
  if (!(apart <= kLimit))
    return fmt::format("results are {:.2e} of the largest apart, the limit is {:.0e}", apart, kLimit);
  if (golden.greedy.empty()) return {};
  const auto count = static_cast<std::int32_t>(golden.greedy.size());
  const Answer answer = generate(**engine, {greedy_request(golden.prompt, count)})[0];
  const auto first = std::ranges::mismatch(answer.token_ids, golden.greedy).in1 - answer.token_ids.begin();
  if (first == count) return {};
  return fmt::format("the greedy answer differs from token {} on {}", first, answer.error);
}

// Whether the model's results differ from the golden's by more than the limit; a refusal is a difference.
bool is_noticed(const std::string& model, const Golden& golden) {
  return !(distance(results_of(model, golden), expected_results(golden)) <= kLimit);
}

// Those of the golden's positions whose rows differ in any bit.
std::vector<std::int32_t> changed_positions(std::span<const float> before, std::span<const float> after,
                                            const Golden& golden) {
  std::vector<std::int32_t> changed;
  if (before.size() != golden.logits.size() || after.size() != before.size()) return changed;
  const auto width = static_cast<std::size_t>(golden.vocab_size);
  for (std::size_t i = 0; i < golden.logit_positions.size(); ++i) {
    if (!std::ranges::equal(before.subspan(i * width, width), after.subspan(i * width, width)))
      changed.push_back(golden.logit_positions[i]);
  }
  return changed;
}

std::vector<std::int32_t> positions_of(std::int32_t expert, const Golden& golden) {
  std::vector<std::int32_t> positions;
  for (const std::int32_t position : golden.logit_positions) {
    const auto& used = golden.experts.at(static_cast<std::size_t>(position));
    if (std::ranges::find(used, expert) != used.end()) positions.push_back(position);
  }
  return positions;
}

class GoldenTest : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    auto golden = read_golden(GetParam().state.name);
    ASSERT_TRUE(golden) << golden.error().message;
    golden_ = std::move(*golden);
  }

  const GoldenState& state() const { return GetParam().state; }
  const std::string& waits_for() const { return state().waits_for(GetParam().form); }
  std::string model() const { return golden_model_path(state().name, GetParam().form); }

  // Each mutation of a kind that counts is noticed.
  void expect_noticed(const MutableGguf& gguf, const std::vector<GgufMutation>& mutations) const {
    const std::string path = ::testing::TempDir() + "golden_" + state().name + ".gguf";
    for (const GgufMutation& mutation : mutations) {
      if (std::ranges::find(kDescriptions, mutation.what) != std::end(kDescriptions)) continue;
      const auto written = gguf.write(mutation, path);
      ASSERT_TRUE(written) << written.error().message;
      EXPECT_EQ(is_noticed(path, golden_), state().has_effect(mutation.what)) << mutation.what;
    }
    std::filesystem::remove(path);
  }

  Golden golden_;
};

TEST_P(GoldenTest, AgreesWithTheReference) {
  for (const kernels::Isa& each : kernels::host_isas()) {
    const std::string difference = disagreement(model(), each.table.isa, golden_);
    if (waits_for().empty()) {
      EXPECT_EQ(difference, "") << each.table.isa;
    } else {
      ASSERT_NE(difference, "") << "agrees by now: mark it supported in tests/goldens/goldens.txt";
      GTEST_LOG_(INFO) << "waits for " << waits_for() << ": " << difference;
      return;
    }
  }
}

TEST_P(GoldenTest, NoticesEveryKindOfTensorAndEveryNumber) {
  if (!waits_for().empty() || GetParam().form != GoldenForm::kGguf) return;
  const auto gguf = MutableGguf::open(model());
  ASSERT_TRUE(gguf) << gguf.error().message;
  EXPECT_GE(gguf->tensors().size(), 8u);
  EXPECT_GE(gguf->numbers().size(), 6u);
  expect_noticed(*gguf, gguf->tensors());
  expect_noticed(*gguf, gguf->numbers());
}

TEST_P(GoldenTest, FolderAndGgufAgreeMoreClosely) {
  if (GetParam().form != GoldenForm::kFolder || !waits_for().empty() || !state().gguf_waits_for.empty())
    return;
  const std::string gguf = golden_model_path(state().name, GoldenForm::kGguf);
  EXPECT_LE(distance(results_of(model(), golden_), results_of(gguf, golden_)), kFormLimit);
}

// Disturbing one expert of the last layer must change the logits after just those tokens that the reference gives
// to it, and no bit of the others.
TEST_P(GoldenTest, GivesTokensToTheReferencesExperts) {
  if (golden_.experts.empty() || !waits_for().empty() || GetParam().form != GoldenForm::kGguf) return;
  const auto gguf = MutableGguf::open(model());
  ASSERT_TRUE(gguf) << gguf.error().message;
  const std::string path = ::testing::TempDir() + "golden_expert_" + state().name + ".gguf";
  const std::vector<float> plain = results_of(model(), golden_);
  std::int32_t num_seen = 0;
  for (std::int32_t expert = 0; const auto mutation = gguf->expert(expert); ++expert, ++num_seen) {
    ASSERT_TRUE(gguf->write(*mutation, path));
    EXPECT_EQ(changed_positions(plain, results_of(path, golden_), golden_), positions_of(expert, golden_))
        << "expert " << expert;
  }
  EXPECT_GE(num_seen, 2);
  std::filesystem::remove(path);
}

std::string name_of_case(const ::testing::TestParamInfo<Case>& info) {
  std::string name = info.param.state.name + (info.param.form == GoldenForm::kGguf ? "_gguf" : "_folder");
  std::ranges::replace(name, '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Goldens, GoldenTest, ::testing::ValuesIn(cases()), name_of_case);

TEST(GoldenList, EachFolderHasItsLine) {
  const auto states = read_golden_states();
  ASSERT_TRUE(states) << states.error().message;
  std::vector<std::string> listed, present;
  for (const GoldenState& state : *states) listed.push_back(state.name);
  const std::string list = golden_model_path("", GoldenForm::kFolder);
  for (const auto& entry : std::filesystem::directory_iterator(list))
    if (entry.is_directory()) present.push_back(entry.path().filename());
  std::ranges::sort(listed);
  std::ranges::sort(present);
  EXPECT_EQ(listed, present);
}

}  // namespace
}  // namespace kvasir::testing::golden_test
