// Adapters: a request that names one gets the answer of the merged model, and nobody else notices.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "generate.h"
#include "io/weight_source.h"
#include "lora_files.h"

namespace kvasir::testing::lora_test {
namespace {

const std::string kBase = std::string(KVASIR_SOURCE_DIR) + "/tests/cases/models/llama-f32.gguf";
constexpr std::int32_t kNewTokens = 24;

class Lora : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("kvasir-lora-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    source_ = io::open_gguf(kBase).value();
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::unique_ptr<Engine> engine(const std::string& model, std::vector<AdapterConfig> adapters = {},
                                 AdapterType type = AdapterType::kF16) const {
    auto loaded = try_engine(model, std::move(adapters), type);
    EXPECT_TRUE(loaded) << loaded.error().message;
    return *std::move(loaded);
  }
  static Result<std::unique_ptr<Engine>> try_engine(const std::string& model, std::vector<AdapterConfig> adapters,
                                                    AdapterType type = AdapterType::kF16) {
    EngineConfig config;
    config.model_path = model;
    config.num_threads = 2;
    config.kv_cache_tokens = 4096;
    config.kv_cache_type = KvCacheType::kF32;  // others round what differs by a bit
    config.adapters = std::move(adapters);
    config.adapter_type = type;
    return Engine::load(config);
  }
  std::string error_of(const std::string& adapter) const {
    const auto loaded = try_engine(kBase, {{.name = "a", .path = adapter}});
    return loaded ? "" : loaded.error().message.substr(adapter.size());
  }

  std::filesystem::path folder_;
  std::unique_ptr<io::WeightSource> source_;
};

std::vector<Request> requests(const std::string& adapter, int count = 6) {
  std::vector<Request> all;
  for (const std::vector<TokenId>& prompt : random_prompts(count, 20, 90, 250, 11)) {
    Request request = greedy_request(prompt, kNewTokens);
    request.sampling.logprobs = 1;
    request.sampling.ignore_eos = true;
    request.adapter = adapter;
    all.push_back(std::move(request));
  }
  return all;
}

void expect_same_bits(const Answer& a, const Answer& b) {
  EXPECT_EQ(a.error, "");
  EXPECT_EQ(a.token_ids, b.token_ids);
  ASSERT_EQ(a.logprobs.size(), b.logprobs.size());
  for (std::size_t i = 0; i < a.logprobs.size(); ++i) {
    EXPECT_EQ(std::bit_cast<std::uint32_t>(a.logprobs[i].chosen.logprob),
              std::bit_cast<std::uint32_t>(b.logprobs[i].chosen.logprob));
  }
}

TEST_F(Lora, AnswersAsTheMergedModelDoes) {
  const LoraNumbers numbers = random_lora(*source_, /*rank=*/5, /*seed=*/1);
  write_gguf_lora(numbers, "llama", /*alpha=*/10.0f, path("a.gguf"));
  write_merged(kBase, *source_, numbers, /*factor=*/2.0f, path("merged.gguf"));
  const auto adapted = engine(kBase, {{.name = "a", .path = path("a.gguf")}});
  const auto merged = engine(path("merged.gguf")), plain = engine(kBase);
  EXPECT_EQ(*adapted->adapters(), std::vector<std::string>{"a"});
  const auto got = generate(*adapted, requests("a")), wanted = generate(*merged, requests("")), base = generate(*plain, requests(""));
  int num_other = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].token_ids, wanted[i].token_ids) << i;
    num_other += got[i].token_ids == base[i].token_ids ? 0 : 1;
    for (std::size_t j = 0; j < wanted[i].logprobs.size(); ++j) {
      EXPECT_NEAR(got[i].logprobs[j].chosen.logprob, wanted[i].logprobs[j].chosen.logprob, 1e-5);
    }
  }
  EXPECT_GT(num_other, 0) << "the adapter changes too little to be seen";
}

TEST_F(Lora, ScaleIsAFactorOnTheChange) {
  const LoraNumbers numbers = random_lora(*source_, 8, 2);
  write_gguf_lora(numbers, "llama", 8.0f, path("a.gguf"));
  write_merged(kBase, *source_, numbers, 0.5f, path("merged.gguf"));
  const auto adapted = engine(kBase, {{.name = "half", .path = path("a.gguf"), .scale = 0.5f},
                                      {.name = "none", .path = path("a.gguf"), .scale = 0.0f}});
  const auto wanted = generate(*engine(path("merged.gguf")), requests("")), base = generate(*engine(kBase), requests(""));
  const auto half = generate(*adapted, requests("half")), none = generate(*adapted, requests("none"));
  for (std::size_t i = 0; i < half.size(); ++i) {
    EXPECT_EQ(half[i].token_ids, wanted[i].token_ids);
    expect_same_bits(none[i], base[i]);
  }
}

TEST_F(Lora, ARequestMayHaveAScaleOfItsOwn) {
  write_gguf_lora(random_lora(*source_, 8, 2), "llama", 8.0f, path("a.gguf"));
  const auto given = engine(kBase, {{.name = "a", .path = path("a.gguf"), .scale = 0.25f}});
  const auto wanted = engine(kBase, {{.name = "a", .path = path("a.gguf"), .scale = 0.5f}});
  std::vector<Request> mixed;
  for (const std::optional<float> scale : {std::optional<float>(), std::optional(0.5f), std::optional(0.0f)}) {
    for (Request& request : requests("a")) {
      request.adapter_scale = scale;
      mixed.push_back(std::move(request));
    }
  }
  const auto together = generate(*given, mixed);
  const auto half = generate(*wanted, requests("a")), base = generate(*wanted, requests(""));
  for (std::size_t i = 0; i < 6; ++i) {
    expect_same_bits(together[6 + i], half[i]);
    expect_same_bits(together[12 + i], base[i]);
    Request request = mixed[i];
    request.use_prefix_cache = false;
    expect_same_bits(together[i], generate(*given, {request}).front());
  }
  Request other = requests("a", 1).front();
  other.adapter_scale = 0.125f;
  EXPECT_EQ(generate(*given, {other}).front().usage.cached_tokens, 0) << "another scale is another version";
  EXPECT_GT(generate(*given, {other}).front().usage.cached_tokens, 0);
  other.adapter_scale = 0.25f;
  EXPECT_GT(generate(*given, {other}).front().usage.cached_tokens, 0) << "as it was loaded";
}

// Bytes round a number by 1/254 of its row's greatest at most, which leaves the answers near those of the merged model.
TEST_F(Lora, InBytesTheyTakeAQuarterAndAnswerNearly) {
  const LoraNumbers numbers = random_lora(*source_, 16, 1);
  write_gguf_lora(numbers, "llama", 32.0f, path("a.gguf"));
  write_merged(kBase, *source_, numbers, 2.0f, path("merged.gguf"));
  const std::vector<AdapterConfig> adapters = {{.name = "a", .path = path("a.gguf")}};
  const auto bytes = engine(kBase, adapters, AdapterType::kInt8), floats = engine(kBase, adapters);
  EXPECT_LT(bytes->stats().adapter_bytes, 0.32 * static_cast<double>(floats->stats().adapter_bytes));
  const auto merged = engine(path("merged.gguf"));
  double rounded = 0.0, changed = 0.0;
  int num = 0;
  for (const Request& request : requests("a")) {
    Request plain = request;
    plain.adapter = "";
    const Answer got = generate(*bytes, {request}).front(), wanted = generate(*merged, {plain}).front(), base = generate(*bytes, {plain}).front();
    rounded += std::abs(got.logprobs[0].chosen.logprob - wanted.logprobs[0].chosen.logprob);
    changed += std::abs(base.logprobs[0].chosen.logprob - wanted.logprobs[0].chosen.logprob);
    ++num;
  }
  EXPECT_LT(rounded, 0.1 * changed) << "of " << num << " first tokens";
}

class LoraOfType : public Lora, public ::testing::WithParamInterface<AdapterType> {};
INSTANTIATE_TEST_SUITE_P(Types, LoraOfType, ::testing::Values(AdapterType::kF16, AdapterType::kInt8));

// Alone an adapter is added in the tiles of the base's product, in company behind it.
TEST_P(LoraOfType, NobodyNoticesTheCompany) {
  write_gguf_lora(random_lora(*source_, 4, 3), "llama", 8.0f, path("a.gguf"));
  write_gguf_lora(random_lora(*source_, 20, 4), "llama", 20.0f, path("b.gguf"));
  const auto adapted = engine(kBase, {{.name = "a", .path = path("a.gguf")}, {.name = "b", .path = path("b.gguf")}}, GetParam());
  const auto plain = engine(kBase);
  const auto base = generate(*plain, requests(""));
  std::vector<Request> mixed;
  for (const std::string adapter : {"", "a", "b"}) {
    for (Request& request : requests(adapter)) mixed.push_back(std::move(request));
  }
  const auto together = generate(*adapted, mixed);
  for (std::size_t i = 0; i < 6; ++i) expect_same_bits(together[i], base[i]);
  for (std::size_t i = 6; i < mixed.size(); ++i) {
    Request request = mixed[i];
    request.use_prefix_cache = false;
    const auto alone = generate(*adapted, {request});
    expect_same_bits(together[i], alone.front());
  }
}

TEST_F(Lora, CellsOfAnotherAdapterAreNeverFound) {
  write_gguf_lora(random_lora(*source_, 4, 5), "llama", 8.0f, path("a.gguf"));
  write_gguf_lora(random_lora(*source_, 4, 6), "llama", 8.0f, path("b.gguf"));
  const auto adapted = engine(kBase, {{.name = "a", .path = path("a.gguf")}, {.name = "b", .path = path("b.gguf")},
                                      {.name = "again", .path = path("a.gguf")}});
  for (const std::string adapter : {"", "a", "b"}) {
    EXPECT_EQ(generate(*adapted, requests(adapter, 1)).front().usage.cached_tokens, 0) << adapter;
  }
  for (const std::string adapter : {"", "a", "b", "again"}) {
    EXPECT_GT(generate(*adapted, requests(adapter, 1)).front().usage.cached_tokens, 0) << adapter;
  }
}

TEST_F(Lora, AFolderOfPeftIsTheSameAsAGgufFile) {
  const LoraNumbers numbers = random_lora(*source_, 6, 7);
  write_gguf_lora(numbers, "llama", 12.0f, path("a.gguf"));
  write_peft_lora(numbers, *source_, R"("r":6,"lora_alpha":12)", path("a"));
  write_peft_lora(numbers, *source_, R"("r":6,"lora_alpha":4.898979485566356,"use_rslora":true)", path("rs"));
  const auto adapted = engine(kBase, {{.name = "gguf", .path = path("a.gguf")}, {.name = "peft", .path = path("a")},
                                      {.name = "rs", .path = path("rs")}});
  const auto wanted = generate(*adapted, requests("gguf"));
  const auto peft = generate(*adapted, requests("peft")), stabilised = generate(*adapted, requests("rs"));
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    expect_same_bits(peft[i], wanted[i]);
    EXPECT_EQ(stabilised[i].token_ids, wanted[i].token_ids);
  }
}

TEST_F(Lora, WhatCannotBeUsedIsNamed) {
  const LoraNumbers numbers = random_lora(*source_, 4, 8);
  EXPECT_EQ(error_of(path("none.gguf")), ": there is no such adapter");
  const auto peft_error = [&](const std::string& config) {
    write_peft_lora(numbers, *source_, config, path("p"));
    return error_of(path("p"));
  };
  EXPECT_EQ(peft_error(R"("r":4,"lora_alpha":8,"use_dora":true)"), ": adapter_config.json: use_dora: it is not supported");
  EXPECT_EQ(peft_error(R"("r":4,"lora_alpha":8,"bias":"all")"), R"(: adapter_config.json: bias: must be "none", is "all")");
  EXPECT_EQ(peft_error(R"("r":4,"lora_alpha":8,"modules_to_save":["lm_head"])"),
            ": adapter_config.json: modules_to_save: it is not supported");
  EXPECT_EQ(peft_error(R"("r":4)"), ": adapter_config.json: lora_alpha is missing");
  LoraNumbers wrong = numbers;
  wrong.front().name = "blk.99.attn_q.weight";
  write_gguf_lora(wrong, "llama", 8.0f, path("w.gguf"));
  EXPECT_EQ(error_of(path("w.gguf")), ": blk.99.attn_q.weight: the model has no such matrix that an adapter can change");
  wrong = numbers;
  wrong.front().a[3] = std::nanf("");
  write_gguf_lora(wrong, "llama", 8.0f, path("w.gguf"));
  EXPECT_EQ(error_of(path("w.gguf")), ": " + wrong.front().name + ": a number is none");
  write_gguf_lora(numbers, "qwen2", 8.0f, path("w.gguf"));
  EXPECT_EQ(error_of(path("w.gguf")), R"(: general.architecture: must be "llama", is "qwen2")");
  Request request = requests("").front();
  request.adapter = "nobody";
  EXPECT_EQ(generate(*engine(kBase), {request}).front().error, R"(adapter: none is called "nobody")");
}

}  // namespace
}  // namespace kvasir::testing::lora_test
