#include "device_speed.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "generate.h"

namespace kvasir::testing {
namespace {

constexpr std::int32_t kNumStreams = 64, kNumTokens = 128;

struct Load {
  std::int32_t num_streams, num_prompt_tokens, num_tokens;
};

// Seconds until all are done, the best of two runs; other prompts each time, for a prefix is never computed twice.
Result<double> seconds_of(Engine& engine, const Load& load) {
  static std::uint32_t seed = 100;
  double best = 0.0;
  for (int run = 0; run < 2; ++run) {
    std::vector<Request> requests;
    for (auto& prompt : random_prompts(load.num_streams, load.num_prompt_tokens, load.num_prompt_tokens,
                                       engine.model_info().vocab_size, ++seed)) {
      Request request = greedy_request(std::move(prompt), load.num_tokens);
      request.sampling.ignore_eos = true;
      requests.push_back(std::move(request));
    }
    const auto begin = std::chrono::steady_clock::now();
    for (const Answer& answer : generate(engine, std::move(requests))) {
      if (!answer.error.empty()) return make_error(ErrorKind::kMachine, answer.error);
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    best = run == 0 ? seconds.count() : std::min(best, seconds.count());
  }
  return best;
}

// Tokens behind the first, by time.
Result<double> decode_rate(Engine& engine, std::int32_t num_streams, std::int32_t num_prompt_tokens) {
  KVASIR_TRY(const double first, seconds_of(engine, {num_streams, num_prompt_tokens, 1}));
  KVASIR_TRY(const double all, seconds_of(engine, {num_streams, num_prompt_tokens, 1 + kNumTokens}));
  return num_streams * kNumTokens / std::max(all - first, 1e-9);
}

}  // namespace

Result<DeviceSpeed> measure_speed(const std::string& device, const std::string& model) {
  EngineConfig config;
  config.model_path = model;
  config.device = device;
  config.kv_cache_type = KvCacheType::kF16;
  config.max_num_batched_tokens = 2048;
  config.max_num_seqs = kNumStreams;
  config.kv_cache_tokens = kNumStreams * 4 * kNumTokens;
  config.prefix_cache = false;
  KVASIR_TRY(const std::unique_ptr<Engine> engine, Engine::load(config));
  DeviceSpeed speed;
  constexpr std::int32_t kPromptTokens = 2048;
  KVASIR_TRY(const double prompt_s, seconds_of(*engine, {1, kPromptTokens, 1}));
  speed.prompt_tokens_per_s = kPromptTokens / prompt_s;
  KVASIR_TRY(speed.stream_tokens_per_s, decode_rate(*engine, 1, 32));
  KVASIR_TRY(speed.many_streams_tokens_per_s, decode_rate(*engine, kNumStreams, kNumTokens));
  return speed;
}

}  // namespace kvasir::testing
