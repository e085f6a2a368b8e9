// The GPU backend on the host executor (src/backend/cuda/simt/) says what the CPU says, bit for bit: tokens,
// log-probabilities and embeddings of every golden, and of the tiny models in each weight format. KVASIR_EXECUTOR_MODEL
// names a real model to run instead, for eight tokens.
#include <gtest/gtest.h>

#include <bit>
#include <cctype>
#include <cstdlib>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "backend/cuda/runtime/simt_device.h"
#include "backend/registry.h"
#include "generate.h"
#include "goldens.h"

namespace kvasir::testing::executor_device_test {
namespace {

constexpr const char* kExecutor = "executor";

struct Case {
  std::string name, model;
  bool is_encoder = false;
  bool is_real = false;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

std::vector<Case> cases() {
  if (const char* model = std::getenv("KVASIR_EXECUTOR_MODEL")) return {{.name = "real", .model = model, .is_real = true}};
  std::vector<Case> all;
  for (const char* name : {"llama-f32", "llama-q4_k", "llama3-bf16", "qwen2-q8_0", "qwen3-q4_1", "qwen3moe-q4_0", "gemma3-q5_0"}) {
    all.push_back({name, std::string(KVASIR_SOURCE_DIR) + "/tests/cases/models/" + name + ".gguf"});
  }
  const auto states = read_golden_states();
  if (!states) return all;
  for (const GoldenState& state : *states) {
    if (!state.gguf_waits_for.empty()) continue;
    const auto golden = read_golden(state.name);
    all.push_back({state.name, golden_model_path(state.name, GoldenForm::kGguf), golden && !golden->embeddings.empty()});
  }
  return all;
}

// Each device has another order of threads.
void add_executor() {
  static std::uint32_t order = 0;
  backend::add_gpu(kExecutor,
                   []() -> Result<std::unique_ptr<backend::GpuDevice>> { return cuda::make_simt_device(order++ % 8); });
}

std::unique_ptr<Engine> load(const std::string& model, const std::string& device) {
  EngineConfig config;
  config.model_path = model;
  config.device = device;
  config.num_threads = 1;
  config.kv_cache_type = KvCacheType::kF16;
  config.kv_cache_tokens = 1024;
  config.max_num_batched_tokens = 64;
  config.max_num_seqs = 8;
  config.memory_bytes = std::int64_t{4} << 30;
  auto engine = Engine::load(config);
  EXPECT_TRUE(engine.has_value()) << (engine ? "" : engine.error().message);
  return engine ? std::move(*engine) : nullptr;
}

// Some run in chunks, some together; half of them ask for log-probabilities.
std::vector<Answer> answers_of(Engine& engine, const Case& of) {
  const bool is_encoder = of.is_encoder;
  if (of.is_real) return generate(engine, {greedy_request({1, 1000, 2000, 3000, 4000, 5000}, 8)});
  std::vector<Request> requests;
  for (const auto& prompt : random_prompts(4, 3, 90, engine.model_info().vocab_size, 7)) {
    Request request = greedy_request(prompt, is_encoder ? 0 : 4);
    if (is_encoder) {
      request.pooling = Pooling::kOfModel;
      if (request.prompt_token_ids.size() > 60) request.prompt_token_ids.resize(60);
    } else if (requests.size() % 2 == 0) {
      request.sampling.logprobs = 3;
    }
    requests.push_back(std::move(request));
  }
  return generate(engine, std::move(requests));
}

void expect_same(const std::vector<float>& one, const std::vector<float>& other) {
  ASSERT_EQ(one.size(), other.size());
  for (std::size_t i = 0; i < one.size(); ++i) {
    ASSERT_EQ(std::bit_cast<std::uint32_t>(one[i]), std::bit_cast<std::uint32_t>(other[i])) << i;
  }
}

void expect_same(const Answer& one, const Answer& other) {
  EXPECT_EQ(one.error, other.error);
  EXPECT_EQ(one.token_ids, other.token_ids);
  expect_same(one.embedding, other.embedding);
  ASSERT_EQ(one.logprobs.size(), other.logprobs.size());
  for (std::size_t i = 0; i < one.logprobs.size(); ++i) {
    EXPECT_EQ(one.logprobs[i].chosen.token, other.logprobs[i].chosen.token);
    expect_same({one.logprobs[i].chosen.logprob}, {other.logprobs[i].chosen.logprob});
    for (std::size_t top = 0; top < one.logprobs[i].top.size(); ++top) {
      EXPECT_EQ(one.logprobs[i].top[top].token, other.logprobs[i].top[top].token);
      expect_same({one.logprobs[i].top[top].logprob}, {other.logprobs[i].top[top].logprob});
    }
  }
}

class ExecutorDevice : public ::testing::TestWithParam<Case> {};

TEST_P(ExecutorDevice, SaysWhatTheCpuSays) {
  add_executor();
  const auto cpu = load(GetParam().model, "cpu");
  const auto executor = load(GetParam().model, kExecutor);
  ASSERT_NE(cpu, nullptr);
  ASSERT_NE(executor, nullptr);
  EXPECT_EQ(executor->model_info().device, kExecutor);
  const std::vector<Answer> expected = answers_of(*cpu, GetParam());
  const std::vector<Answer> answers = answers_of(*executor, GetParam());
  ASSERT_EQ(answers.size(), expected.size());
  for (std::size_t i = 0; i < answers.size(); ++i) {
    EXPECT_EQ(expected[i].error, "");
    expect_same(answers[i], expected[i]);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, ExecutorDevice, ::testing::ValuesIn(cases()), [](const auto& each) {
  std::string name = each.param.name;
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name;
});

TEST(ExecutorDevice, RefusesWhatItDoesNotHave) {
  add_executor();
  const auto engine = load(std::string(KVASIR_SOURCE_DIR) + "/tests/cases/models/llama-f32.gguf", kExecutor);
  ASSERT_NE(engine, nullptr);
  Request request = greedy_request({1, 2, 3}, 2);
  request.kv.budget = 0.5;
  const std::vector<Answer> answers = generate(*engine, {request});
  EXPECT_NE(answers[0].error.find("kv_policy: executor keeps keys and values as they are computed"), std::string::npos)
      << answers[0].error;
}

}  // namespace
}  // namespace kvasir::testing::executor_device_test
