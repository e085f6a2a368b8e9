#include "engine/part_configs.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>

namespace kvasir {

kv::KvCacheConfig kv_config(const EngineConfig& config, const LoadedModel& loaded) {
  kv::KvCacheConfig kv = loaded.kv;
  kv.prefix_cache = config.prefix_cache;
  kv.prompt_chunk_tokens = scheduler_config(config, loaded).effective_chunk_tokens();
  kv.journal = config.kv_journal;
  std::random_device entropy;
  const auto draw = [&] { return (std::uint64_t{entropy()} << 32) | entropy(); };
  kv.prefix_hash_key = {draw(), draw()};
  return kv;
}

admission::WaitingConfig waiting_config(const EngineConfig& config) {
  return {.policy = config.waiting_policy, .ageing_ms = static_cast<double>(config.ageing_ms)};
}

sched::SchedulerConfig scheduler_config(const EngineConfig& config, const LoadedModel& loaded) {
  return {.max_num_seqs = config.max_num_seqs,
          .max_num_batched_tokens = config.max_num_batched_tokens,
          .max_chunk_tokens = config.max_chunk_tokens,
          .runs_whole_prompts = loaded.info.is_encoder,
          .max_step_ms = config.max_step_ms,
          .waiting = waiting_config(config),
          .ttft_target_ms = static_cast<double>(config.ttft_target_ms),
          .prefill_only = {.max_tokens = loaded.memory.max_prefill_only_tokens,
                           .num_layers = loaded.info.num_layers}};
}

admission::QueueLimitConfig queue_limit_config(const EngineConfig& config, const kv::KvCacheManager& kv) {
  std::int64_t num_blocks = 0;
  for (std::int32_t g = 0; g < kv.num_groups(); ++g)
    num_blocks = std::max<std::int64_t>(num_blocks, kv.group(g).num_blocks);
  const auto num_cached_tokens = static_cast<double>(num_blocks * kv::kTokensPerBlock);
  return {.num_seats = config.max_num_seqs,
          .num_requests = config.max_queued_requests,
          .num_prompt_tokens = static_cast<std::int64_t>(
              std::ceil(config.max_queued_kv_caches * num_cached_tokens))};
}

}  // namespace kvasir
