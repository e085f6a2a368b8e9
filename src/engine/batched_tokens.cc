#include "engine/batched_tokens.h"

#include <algorithm>

#include "base/checked_math.h"

namespace kvasir {
namespace {

constexpr std::int32_t kUsualTokens = 512;
constexpr std::int32_t kMostTokens = 2048;
constexpr std::int32_t
    kRowsPerExpert = 128;  // two panels of 64, the fewest that a matmul decodes weights once for

}  // namespace

std::int32_t batched_tokens(const EngineConfig& config, const model::ModelConfig& model) {
  if (config.max_num_batched_tokens > 0) return config.max_num_batched_tokens;
  std::int32_t tokens = kUsualTokens;
  if (model.is_encoder) {  // a text is one step
    const std::int32_t trained = model.context_length_tokens;
    tokens = std::max(tokens, config.max_model_len_tokens > 0 ? config.max_model_len_tokens : trained);
  }
  if (const backend::RoutingRule& rule = model.moe.rule; model.moe.has_experts()) {
    tokens = std::clamp(ceil_div(kRowsPerExpert * rule.num_experts, rule.num_used), kUsualTokens,
                        kMostTokens);
  }
  return std::max(tokens, config.max_num_seqs);
}

}  // namespace kvasir
