// Idle adapters give up their memory for others, and come back for the requests that name them.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <future>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "generate.h"
#include "io/weight_source.h"
#include "lora/adapter_file.h"
#include "lora_files.h"

namespace kvasir::testing::lora_idle_test {
namespace {

const std::string kBase = std::string(KVASIR_SOURCE_DIR) + "/tests/cases/models/llama-f32.gguf";
constexpr std::int64_t kMiB = 1 << 20;

std::vector<TokenId> tokens_of(const Answer& answer) {
  EXPECT_EQ(answer.error, "");
  return answer.token_ids;
}

Request request_for(const std::string& adapter, std::int32_t num_tokens = 12) {
  Request request = greedy_request(random_prompts(1, 40, 60, 250, 11).front(), num_tokens);
  request.sampling.ignore_eos = true;
  request.adapter = adapter;
  return request;
}

std::vector<TokenId> says(Engine& engine, const std::string& adapter) {
  return tokens_of(generate(engine, {request_for(adapter)}).front());
}

Result<AdapterHold> prepared(Engine& engine, const std::string& name) {
  std::promise<Result<AdapterHold>> got;
  engine.prepare_adapter(name, {}, [&](Result<AdapterHold> hold) { got.set_value(std::move(hold)); });
  return got.get_future().get();
}

class LoraIdle : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("kvasir-lora-idle-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    source_ = io::open_gguf(kBase).value();
    for (const std::string name : {"a", "b", "c", "d", "e", "f"}) write(name, static_cast<std::uint32_t>(name.front()));
    read_bytes_ = lora::max_read_bytes(path("a"));
    const auto roomy = engine(64 * kMiB);
    EXPECT_TRUE(load(*roomy, "a"));
    one_bytes_ = roomy->stats().adapter_bytes;
    for (const std::string name : {"a", "b", "c", "d", "e", "f"}) {
      EXPECT_TRUE(load(*roomy, name));
      answers_.push_back(says(*roomy, name));
    }
    base_ = says(*roomy, "");
    EXPECT_EQ(roomy->stats().num_adapter_evictions, 0);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / (name + ".gguf")).string(); }
  void write(const std::string& name, std::uint32_t seed) const {
    write_gguf_lora(random_lora(*source_, 4, seed), "llama", 8.0f, path(name));
  }
  // With room for so many adapters, and for the file of one more that is read.
  std::unique_ptr<Engine> engine_for(int num_adapters, std::vector<AdapterConfig> of_start = {}) const {
    return engine(num_adapters * one_bytes_ + read_bytes_, std::move(of_start));
  }
  static std::unique_ptr<Engine> engine(std::int64_t adapter_memory_bytes, std::vector<AdapterConfig> of_start = {}) {
    EngineConfig config;
    config.model_path = kBase;
    config.num_threads = 2;
    config.kv_cache_tokens = 8192;
    config.kv_cache_type = KvCacheType::kF32;
    config.adapters = std::move(of_start);
    config.adapter_memory_bytes = adapter_memory_bytes;
    auto loaded = Engine::load(config);
    EXPECT_TRUE(loaded) << loaded.error().message;
    return *std::move(loaded);
  }
  Status load(Engine& engine, const std::string& name) const { return engine.load_adapter({.name = name, .path = path(name)}); }
  const std::vector<TokenId>& answer_of(const std::string& name) const {
    return answers_.at(static_cast<std::size_t>(name.front() - 'a'));
  }

  std::filesystem::path folder_;
  std::unique_ptr<io::WeightSource> source_;
  std::int64_t one_bytes_ = 0, read_bytes_ = 0;
  std::vector<std::vector<TokenId>> answers_;  // of a to f
  std::vector<TokenId> base_;
};

TEST_F(LoraIdle, TheOneThatWasUsedLongestAgoLeavesAndComesBack) {
  const auto engine = engine_for(2);
  for (const std::string name : {"a", "b", "c"}) ASSERT_TRUE(load(*engine, name));
  EXPECT_EQ(*engine->adapters(), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(engine->stats().num_adapter_evictions, 1);
  const auto expect_counts = [&](std::int64_t num_reloads, std::int64_t num_evictions) {
    const EngineStats stats = engine->stats();
    EXPECT_EQ(stats.num_adapter_reloads, num_reloads);
    EXPECT_EQ(stats.num_adapter_evictions, num_evictions);
    EXPECT_EQ(stats.num_adapter_loads, 3);
    EXPECT_EQ(stats.num_adapters, 3);
    EXPECT_EQ(stats.adapter_bytes, 2 * one_bytes_);
  };
  EXPECT_EQ(says(*engine, "c"), answer_of("c"));
  EXPECT_EQ(says(*engine, "b"), answer_of("b"));
  expect_counts(0, 1);
  EXPECT_EQ(says(*engine, "a"), answer_of("a"));  // in the place of c
  expect_counts(1, 2);
  EXPECT_EQ(says(*engine, "b"), answer_of("b"));
  expect_counts(1, 2);
  const Answer again = generate(*engine, {request_for("c")}).front();  // in the place of a
  EXPECT_EQ(tokens_of(again), answer_of("c"));
  EXPECT_GT(again.usage.cached_tokens, 0) << "these numbers have been here before";
  expect_counts(2, 3);
  EXPECT_EQ(says(*engine, ""), base_);
}

TEST_F(LoraIdle, ThoseOfTheStartStay) {
  const auto engine = engine_for(2, {{.name = "a", .path = path("a")}});
  std::filesystem::remove(path("a"));
  for (const std::string name : {"b", "c", "d"}) {
    ASSERT_TRUE(load(*engine, name));
    EXPECT_EQ(says(*engine, name), answer_of(name));
  }
  EXPECT_EQ(engine->stats().num_adapter_evictions, 2);
  EXPECT_EQ(says(*engine, "a"), answer_of("a"));
  EXPECT_EQ(engine->stats().num_adapter_reloads, 0);
}

TEST_F(LoraIdle, WhoIsInUseStays) {
  const auto engine = engine_for(1);
  ASSERT_TRUE(load(*engine, "a"));
  std::vector<TokenId> got;
  std::promise<void> ended;
  const auto sink = [&](const RequestOutput& output) {
    if (got.empty()) {
      const Status refused = load(*engine, "b");
      EXPECT_FALSE(refused);
      EXPECT_EQ(refused.error().kind, ErrorKind::kUnavailable);
      EXPECT_TRUE(refused.error().message.contains("others have")) << refused.error().message;
    }
    got.insert(got.end(), output.token_ids.begin(), output.token_ids.end());
    if (output.request_finished) {
      EXPECT_TRUE(load(*engine, "b"));  // a's reader may come with another one at once
      ended.set_value();
    }
  };
  ASSERT_TRUE(engine->submit(request_for("a"), sink));
  ended.get_future().wait();
  EXPECT_EQ(got, answer_of("a"));
  EXPECT_EQ(engine->stats().num_adapter_evictions, 1);
  AdapterHold hold = prepared(*engine, "a").value();
  EXPECT_EQ(load(*engine, "c").error().kind, ErrorKind::kUnavailable);
  EXPECT_EQ(generate(*engine, {request_for("")}).front().token_ids, base_);
  hold.reset();
  EXPECT_TRUE(load(*engine, "c"));
  EXPECT_EQ(says(*engine, "c"), answer_of("c"));
}

TEST_F(LoraIdle, ARequestWaitsUntilOthersLeaveRoom) {
  const auto engine = engine_for(1);
  ASSERT_TRUE(load(*engine, "a"));
  ASSERT_TRUE(load(*engine, "b"));  // a leaves
  AdapterHold hold = prepared(*engine, "b").value();
  std::promise<Result<AdapterHold>> back;
  std::future<Result<AdapterHold>> comes = back.get_future();
  engine->prepare_adapter("a", {}, [&](Result<AdapterHold> held) { back.set_value(std::move(held)); });
  EXPECT_EQ(comes.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);
  EXPECT_EQ(says(*engine, "b"), answer_of("b")) << "others run meanwhile";
  hold.reset();
  EXPECT_TRUE(comes.get());
  EXPECT_EQ(says(*engine, "a"), answer_of("a"));
  std::stop_source client;
  hold = prepared(*engine, "a").value();
  std::promise<Result<AdapterHold>> never;
  engine->prepare_adapter("b", client.get_token(), [&](Result<AdapterHold> held) { never.set_value(std::move(held)); });
  client.request_stop();
  EXPECT_EQ(never.get_future().get().error().kind, ErrorKind::kCancelled);
}

TEST_F(LoraIdle, OneThatStaysLeavesNoRoomForever) {
  const auto engine = this->engine(one_bytes_ + read_bytes_, {{.name = "a", .path = path("a")}});
  const Status refused = load(*engine, "b");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kUsage);
  EXPECT_TRUE(refused.error().message.contains("adapters that stay have")) << refused.error().message;
}

TEST_F(LoraIdle, OneThatCanNeverFitPutsNobodyOut) {
  const auto engine = engine_for(2);
  ASSERT_TRUE(load(*engine, "a"));
  write_gguf_lora(random_lora(*source_, 128, 9), "llama", 8.0f, path("large"));
  const Status refused = load(*engine, "large");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kUsage) << refused.error().message;
  EXPECT_EQ(engine->stats().num_adapter_evictions, 0);
}

TEST_F(LoraIdle, AFileThatIsGoneConcernsItsRequestsAlone) {
  const auto engine = engine_for(1);
  ASSERT_TRUE(load(*engine, "a"));
  EXPECT_EQ(says(*engine, "a"), answer_of("a"));
  ASSERT_TRUE(load(*engine, "b"));
  std::filesystem::remove(path("a"));
  const auto gone = prepared(*engine, "a");
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().kind, ErrorKind::kBadFile);
  EXPECT_EQ(gone.error().message, path("a") + ": there is no such adapter");
  EXPECT_EQ(generate(*engine, {request_for("a")}).front().error, gone.error().message);
  EXPECT_EQ(says(*engine, "b"), answer_of("b"));
  EXPECT_EQ(*engine->adapters(), (std::vector<std::string>{"a", "b"}));
  write("a", 77);
  const Answer other = generate(*engine, {request_for("a")}).front();
  EXPECT_NE(tokens_of(other), answer_of("a"));
  EXPECT_EQ(other.usage.cached_tokens, 0) << "other numbers";
  ASSERT_TRUE(load(*engine, "b"));
  ASSERT_TRUE(engine->unload_adapter("a"));
  EXPECT_EQ(prepared(*engine, "a").error().message, R"(adapter: none is called "a")");
}

TEST_F(LoraIdle, ManyThreadsOfMoreAdaptersThanFit) {
  constexpr int kThreads = 4;
  const auto engine = engine_for(kThreads);  // one for each: nobody may find it full
  for (const std::string name : {"a", "b", "c", "d", "e", "f"}) ASSERT_TRUE(load(*engine, name));
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 60; ++i) {
        const std::string name(1, static_cast<char>('a' + (thread * 5 + i * (thread + 1)) % 6));
        EXPECT_EQ(says(*engine, name), answer_of(name));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const EngineStats stats = engine->stats();
  EXPECT_GT(stats.num_adapter_reloads, 20);
  EXPECT_LE(stats.adapter_bytes, kThreads * one_bytes_);
}

TEST_F(LoraIdle, WhoWaitsForOneWhenTheServerEndsIsTold) {
  const auto engine = engine_for(1);
  for (const std::string name : {"a", "b"}) ASSERT_TRUE(load(*engine, name));
  engine->drain(0);
  EXPECT_EQ(prepared(*engine, "a").error().kind, ErrorKind::kUnavailable);
}

}  // namespace
}  // namespace kvasir::testing::lora_idle_test
