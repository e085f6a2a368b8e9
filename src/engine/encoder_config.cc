#include "engine/encoder_config.h"

#include <algorithm>

#include "kv/cells/cell.h"

namespace kvasir {
namespace {

constexpr std::int32_t kSeats = 64;

}  // namespace

EngineConfig encoder_config(EngineConfig config) {
  config.max_num_seqs = std::max(config.max_num_seqs, std::min(kSeats, config.max_num_batched_tokens));
  config.max_chunk_tokens = 0;
  config.max_step_ms = 0.0;
  config.ttft_target_ms = 0;
  config.prefill_only = false;
  config.prefix_cache = false;
  config.public_prefixes.clear();
  config.kv_cache_type = KvCacheType::kF32;
  // Each text takes its last block whole.
  config.kv_cache_tokens = std::int64_t{config.max_num_batched_tokens} +
                           std::int64_t{kv::kTokensPerBlock} * config.max_num_seqs;
  config.kv_calibration = config.kv_key_components = false;
  return config;
}

}  // namespace kvasir
