// Adapters that come and go while the engine runs: whoever runs with one keeps it, and nobody else notices.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "generate.h"
#include "io/weight_source.h"
#include "lora_files.h"

namespace kvasir::testing::lora_life_test {
namespace {

const std::string kBase = std::string(KVASIR_SOURCE_DIR) + "/tests/cases/models/llama-f32.gguf";
constexpr std::int64_t kMiB = 1 << 20;

class LoraLife : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("kvasir-lora-life-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    source_ = io::open_gguf(kBase).value();
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string adapter(const std::string& file, std::uint32_t seed, std::int32_t rank = 4) const {
    write_gguf_lora(random_lora(*source_, rank, seed), "llama", 2.0f * static_cast<float>(rank), path(file));
    return path(file);
  }
  std::unique_ptr<Engine> engine(std::int64_t adapter_memory_bytes, const std::string& device = "") const {
    EngineConfig config;
    config.model_path = kBase;
    config.num_threads = 2;
    config.kv_cache_tokens = 8192;
    config.kv_cache_type = KvCacheType::kF32;
    config.adapter_memory_bytes = adapter_memory_bytes;
    config.device = device;
    auto loaded = Engine::load(config);
    EXPECT_TRUE(loaded) << loaded.error().message;
    return *std::move(loaded);
  }

  std::filesystem::path folder_;
  std::unique_ptr<io::WeightSource> source_;
};

std::vector<Request> requests(const std::string& adapter, int count, std::int32_t num_tokens = 12) {
  std::vector<Request> all;
  for (const std::vector<TokenId>& prompt : random_prompts(count, 20, 60, 250, 11)) {
    Request request = greedy_request(prompt, num_tokens);
    request.sampling.ignore_eos = true;
    request.adapter = adapter;
    all.push_back(std::move(request));
  }
  return all;
}

// A request's last output goes out before the engine lets go of it.
void expect_adapter_bytes(const Engine& engine, std::int64_t bytes) {
  for (int i = 0; i < 5000 && engine.stats().adapter_bytes != bytes; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(engine.stats().adapter_bytes, bytes);
}

std::vector<std::vector<TokenId>> tokens_of(const std::vector<Answer>& answers) {
  std::vector<std::vector<TokenId>> all;
  for (const Answer& answer : answers) {
    EXPECT_EQ(answer.error, "");
    all.push_back(answer.token_ids);
  }
  return all;
}

TEST_F(LoraLife, OneThatIsLoadedLaterAnswersAsOneOfTheStart) {
  const std::string file = adapter("a.gguf", 1);
  for (const std::string device : {"", "guarded"}) {
    const auto later = engine(8 * kMiB, device);
    EXPECT_TRUE(later->adapters()->empty());
    EXPECT_EQ(generate(*later, requests("a", 1)).front().error, R"(adapter: none is called "a")");
    ASSERT_TRUE(later->load_adapter({.name = "a", .path = file}));
    EXPECT_EQ(*later->adapters(), std::vector<std::string>{"a"});
    EngineConfig config;
    config.model_path = kBase;
    config.kv_cache_tokens = 8192;
    config.kv_cache_type = KvCacheType::kF32;
    config.adapters = {{.name = "a", .path = file}};
    const auto first = Engine::load(config).value();
    EXPECT_EQ(tokens_of(generate(*later, requests("a", 3))), tokens_of(generate(*first, requests("a", 3))));
    EXPECT_EQ(first->load_adapter({.name = "b", .path = file}).error().message,
              "--adapter-memory is 0, so that adapters are loaded at the start alone");
  }
}

TEST_F(LoraLife, TheSameNameWithOtherNumbersFindsNoCachedToken) {
  const auto engine = this->engine(8 * kMiB);
  ASSERT_TRUE(engine->load_adapter({.name = "a", .path = adapter("a.gguf", 1)}));
  const auto before = generate(*engine, requests("a", 1));
  EXPECT_GT(generate(*engine, requests("a", 1)).front().usage.cached_tokens, 0);
  ASSERT_TRUE(engine->load_adapter({.name = "a", .path = adapter("b.gguf", 2)}));
  EXPECT_EQ(*engine->adapters(), std::vector<std::string>{"a"});
  const auto after = generate(*engine, requests("a", 1));
  EXPECT_EQ(after.front().usage.cached_tokens, 0);
  EXPECT_NE(tokens_of(after), tokens_of(before));
  ASSERT_TRUE(engine->unload_adapter("a"));
  ASSERT_TRUE(engine->load_adapter({.name = "a", .path = path("a.gguf")}));
  const auto again = generate(*engine, requests("a", 1));
  EXPECT_GT(again.front().usage.cached_tokens, 0) << "these numbers have been here before";
  EXPECT_EQ(tokens_of(again), tokens_of(before));
}

TEST_F(LoraLife, MemoryHasABoundAndComesBack) {
  const std::string small = adapter("a.gguf", 1), large = adapter("large.gguf", 2, 128);
  const auto engine = this->engine(kMiB / 2);
  ASSERT_TRUE(engine->load_adapter({.name = "a", .path = small}));
  const std::int64_t one_bytes = engine->stats().adapter_bytes;
  EXPECT_GT(one_bytes, 0);
  const Status beyond = engine->load_adapter({.name = "large", .path = large});
  ASSERT_FALSE(beyond);
  EXPECT_EQ(beyond.error().kind, ErrorKind::kUsage);
  EXPECT_TRUE(beyond.error().message.contains("--adapter-memory is 512 KiB")) << beyond.error().message;
  int num_loaded = 1;
  while (engine->stats().num_adapter_evictions == 0) {
    EXPECT_EQ(engine->stats().adapter_bytes, num_loaded * one_bytes);
    ASSERT_TRUE(engine->load_adapter({.name = "a" + std::to_string(num_loaded), .path = small}));
    ASSERT_LT(++num_loaded, 100);
  }
  EXPECT_EQ(engine->stats().num_adapters, num_loaded);
  EXPECT_EQ(engine->stats().adapter_bytes, (num_loaded - 1) * one_bytes) << "the first has left";
  EXPECT_EQ(tokens_of(generate(*engine, requests("a1", 2))), tokens_of(generate(*engine, requests("a", 2))));
  const AdapterNames names = engine->adapters();
  for (const std::string& name : *names) EXPECT_TRUE(engine->unload_adapter(name));
  expect_adapter_bytes(*engine, 0);
  EXPECT_EQ(engine->unload_adapter("a").error().kind, ErrorKind::kNotFound);
}

TEST_F(LoraLife, ARequestKeepsTheAdapterThatItBeganWith) {
  const auto engine = this->engine(8 * kMiB);
  const std::string first = adapter("a.gguf", 1), second = adapter("b.gguf", 2);
  ASSERT_TRUE(engine->load_adapter({.name = "a", .path = first}));
  Request asked = requests("a", 1, 60).front();
  asked.use_prefix_cache = false;
  const auto alone = tokens_of(generate(*engine, {asked})).front();
  std::vector<TokenId> got;
  std::promise<void> ended;
  const auto sink = [&](const RequestOutput& output) {
    if (got.empty()) {  // behind its first token its name leads elsewhere, then nowhere
      EXPECT_TRUE(engine->load_adapter({.name = "a", .path = second}));
      EXPECT_TRUE(engine->unload_adapter("a"));
    }
    got.insert(got.end(), output.token_ids.begin(), output.token_ids.end());
    if (output.request_finished) ended.set_value();
  };
  ASSERT_TRUE(engine->submit(asked, sink));
  ended.get_future().wait();
  EXPECT_EQ(got, alone);
  expect_adapter_bytes(*engine, 0);
}

TEST_F(LoraLife, AThousandLoadsAndUnloadsUnderLoad) {
  const auto engine = this->engine(8 * kMiB);
  const std::string file = adapter("a.gguf", 1), other = adapter("b.gguf", 2);
  ASSERT_TRUE(engine->load_adapter({.name = "stays", .path = file}));
  const auto base = tokens_of(generate(*engine, requests("", 6))), stays = tokens_of(generate(*engine, requests("stays", 6)));
  const std::int64_t before_bytes = engine->stats().adapter_bytes;
  std::atomic<bool> is_over = false;
  std::atomic<std::int64_t> num_answers = 0;
  const auto play = [&](const std::string& name, const auto& wanted) {
    while (!is_over) {
      EXPECT_EQ(tokens_of(generate(*engine, requests(name, 6))), wanted);
      num_answers += 6;
    }
  };
  std::thread plain([&] { play("", base); }), adapted([&] { play("stays", stays); });
  for (int i = 0; i < 1000; ++i) {
    EXPECT_TRUE(engine->load_adapter({.name = "comes", .path = i % 2 == 0 ? other : file}));
    if (i % 50 == 0) {
      EXPECT_EQ(tokens_of(generate(*engine, requests("comes", 6))) == stays, i % 2 != 0);
    }
    EXPECT_TRUE(engine->unload_adapter("comes"));
  }
  is_over = true;
  plain.join();
  adapted.join();
  EXPECT_GT(num_answers, 100);
  expect_adapter_bytes(*engine, before_bytes);
  EXPECT_EQ(engine->stats().num_adapter_loads, 1001);
}

}  // namespace
}  // namespace kvasir::testing::lora_life_test
