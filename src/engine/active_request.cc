#include "engine/active_request.h"

#include <chrono>

#include "engine/kv_params.h"

namespace kvasir {
namespace {

std::optional<sched::TimePoint> start_deadline_of(const Request& request, sched::TimePoint now) {
  if (request.start_within_ms <= 0) return std::nullopt;
  return now + std::chrono::milliseconds(request.start_within_ms);
}

}  // namespace

sched::SequenceRequest sequence_request(const ActiveRequest& active, std::span<const TokenId> eos_token_ids,
                                        std::int32_t expected_cached_tokens, sched::TimePoint now) {
  const Request& request = active.request;
  const SamplingParams& params = request.sampling;
  return {
      .request_id = active.id,
      .prompt_token_ids = request.prompt_token_ids,
      .num_choices = params.n,
      .priority = request.priority,
      .tenant = request.tenant,
      .cache_namespace = request.cache_namespace,
      .use_prefix_cache = request.use_prefix_cache,
      .expected_cached_tokens = expected_cached_tokens,
      .kv_policy = policy_settings(request.kv),
      .client_id = request.client_id,
      .want_prompt_logits = params.prompt_logprobs.has_value() ||
                            static_cast<bool>(request.logits_observer) || request.pooling != Pooling::kNone,
      .stop = {.eos_token_ids = {eos_token_ids.begin(), eos_token_ids.end()},
               .stop_token_ids = params.stop_token_ids,
               .max_tokens = *params.max_tokens,
               .min_tokens = params.min_tokens},
      .start_deadline = start_deadline_of(request, now),
  };
}

}  // namespace kvasir
