// The cost of a KV policy on windows of text: perplexity, divergence and agreement against the full cache.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "eval/kv_row.h"
#include "eval/run_request.h"
#include "kvasir/engine.h"

namespace kvasir::eval {

// How a window is measured. The engine must compute kKvStepTokens a step.
struct KvProtocol {
  std::string_view suite;
  // The policy acts once when all but so many of the window's tokens are computed, and these are scored; 0:
  // it acts after every step, and all tokens after the first step are scored.
  std::int32_t num_scored_tokens = 0;
  std::int32_t logit_stride = 8;  // of the scored positions, how many to the next whose logits are compared

  std::int32_t first_scored(std::int32_t ctx_tokens) const;
};
inline constexpr std::int32_t kKvStepTokens = 128;
// Compress once, then score; and streaming.
inline constexpr KvProtocol kCompressThenScore = {"p1", 512};
inline constexpr KvProtocol kStreaming = {"p2", 0};

// The full cache's scores of a window, through the same steps.
struct FullCacheScore {
  std::vector<float> logprobs;                  // of the window's tokens
  std::vector<std::vector<float>> log_softmax;  // at every logit_stride-th scored position
};

// Errors of both: as score_prompt.
Result<FullCacheScore> score_full_cache(Engine& engine, const KvProtocol& protocol,
                                        std::span<const TokenId> window, const KeepGoing& keep_going);
// All of the row but `item`.
Result<KvRow> measure_kv_policy(Engine& engine, const KvProtocol& protocol, std::span<const TokenId> window,
                                const FullCacheScore& full, KvParams kv, const KeepGoing& keep_going);

}  // namespace kvasir::eval
