#include "device_answers.h"

#include <bit>
#include <cstdint>
#include <utility>

#include "goldens.h"

namespace kvasir::testing {
namespace {

bool is_same(float one, float other) { return std::bit_cast<std::uint32_t>(one) == std::bit_cast<std::uint32_t>(other); }

bool is_same(const TokenLogprob& one, const TokenLogprob& other) {
  return one.token == other.token && is_same(one.logprob, other.logprob);
}

bool is_same(const PositionLogprobs& one, const PositionLogprobs& other) {
  if (!is_same(one.chosen, other.chosen) || one.top.size() != other.top.size()) return false;
  for (std::size_t i = 0; i < one.top.size(); ++i) {
    if (!is_same(one.top[i], other.top[i])) return false;
  }
  return true;
}

std::string difference(const Answer& answer, const Answer& expected) {
  if (!expected.error.empty() || answer.error != expected.error) return "an error: " + answer.error + expected.error;
  if (answer.token_ids != expected.token_ids) return "other tokens";
  if (answer.logprobs.size() != expected.logprobs.size()) return "another number of log-probabilities";
  for (std::size_t i = 0; i < answer.logprobs.size(); ++i) {
    if (!is_same(answer.logprobs[i], expected.logprobs[i])) return "other log-probabilities at token " + std::to_string(i);
  }
  if (answer.embedding.size() != expected.embedding.size()) return "another embedding";
  for (std::size_t i = 0; i < answer.embedding.size(); ++i) {
    if (!is_same(answer.embedding[i], expected.embedding[i])) return "another embedding from number " + std::to_string(i);
  }
  return "";
}

DeviceCase tiny_model(const std::string& name) {
  return {.name = name, .model = std::string(KVASIR_SOURCE_DIR) + "/tests/cases/models/" + name + ".gguf"};
}

}  // namespace

std::vector<DeviceCase> fast_device_cases() {
  std::vector<DeviceCase> all;
  for (const char* name : {"llama-q4_k", "qwen2-q8_0", "qwen3-q4_1", "qwen3moe-q4_0", "qwen3moe-wide", "gemma3-q5_0"}) {
    all.push_back(tiny_model(name));
  }
  return all;
}

std::vector<DeviceCase> device_cases() {
  std::vector<DeviceCase> all = fast_device_cases();
  for (const char* name : {"llama-f32", "llama3-bf16"}) all.push_back(tiny_model(name));
  const auto states = read_golden_states();
  if (!states) return all;
  for (const GoldenState& state : *states) {
    if (!state.gguf_waits_for.empty()) continue;
    const auto golden = read_golden(state.name);
    all.push_back({.name = state.name,
                   .model = golden_model_path(state.name, GoldenForm::kGguf),
                   .is_encoder = golden && !golden->embeddings.empty()});
  }
  return all;
}

Result<std::unique_ptr<Engine>> load_on(const std::string& device, const std::string& model,
                                        const DeviceSettings& settings) {
  EngineConfig config;
  config.model_path = model;
  config.device = device;
  config.num_threads = 1;
  config.kv_cache_type = KvCacheType::kF16;
  config.kv_cache_tokens = 1024;
  config.max_num_batched_tokens = 64;
  config.max_num_seqs = 8;
  config.memory_bytes = std::int64_t{4} << 30;
  config.gpu_memory_bytes = settings.gpu_memory_bytes;
  config.gpu_layers = settings.gpu_layers;
  config.fast = settings.fast;
  return Engine::load(config);
}

std::vector<Answer> device_answers(Engine& engine, const DeviceCase& of) {
  if (of.is_real) return generate(engine, {greedy_request({1, 1000, 2000, 3000, 4000, 5000}, 8)});
  std::vector<Request> requests;
  for (const auto& prompt : random_prompts(4, 3, 90, engine.model_info().vocab_size, 7)) {
    Request request = greedy_request(prompt, of.is_encoder ? 0 : 4);
    if (of.is_encoder) {
      request.pooling = Pooling::kOfModel;
      if (request.prompt_token_ids.size() > 60) request.prompt_token_ids.resize(60);
    } else if (requests.size() % 2 == 0) {
      request.sampling.logprobs = 3;
    }
    requests.push_back(std::move(request));
  }
  return generate(engine, std::move(requests));
}

std::string first_difference(const std::vector<Answer>& answers, const std::vector<Answer>& expected) {
  if (answers.size() != expected.size()) return "another number of answers";
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const std::string each = difference(answers[i], expected[i]);
    if (!each.empty()) return "answer " + std::to_string(i) + ": " + each;
  }
  return "";
}

}  // namespace kvasir::testing
