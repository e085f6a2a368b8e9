#include "quality/served_answer.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "quality/quality_gate.h"
#include "quality/shadow_score.h"

namespace kvasir::quality {
namespace {

constexpr std::int32_t kStartWithinMs = 60'000;

}  // namespace

bool can_be_shadow(const Request& request) {
  const SamplingParams& sampling = request.sampling;
  const bool is_one_answer = sampling.n == 1 && sampling.beam_width == 0 && sampling.max_tokens != 0 && request.pooling == Pooling::kNone;
  const bool is_own_distribution = !request.guide && sampling.allowed_token_ids.empty() && sampling.logit_bias.empty() && sampling.min_tokens == 0 &&
                                   sampling.repetition_penalty == 1.0f && sampling.presence_penalty == 0.0f &&
                                   sampling.frequency_penalty == 0.0f;
  return is_one_answer && is_own_distribution && !request.logits_observer && request.prompt_token_types.empty();
}

ServedAnswer begin_answer(Request& request, KvPromise promise) {
  ServedAnswer answer = {.kv = request.kv,
                         .promise = std::move(promise),
                         .tokens = request.prompt_token_ids,
                         .num_prompt_tokens = static_cast<std::int32_t>(request.prompt_token_ids.size()),
                         .logprobs = {},
                         .adapter = request.adapter,
                         .adapter_scale = request.adapter_scale,
                         .adapter_hold = request.adapter_hold,
                         .cost = {},
                         .client_id = request.client_id,
                         .tenant = request.tenant,
                         .logprobs_asked = request.sampling.logprobs};
  request.sampling.logprobs = std::max(kServedAlternatives, answer.logprobs_asked.value_or(0));
  return answer;
}

void keep(ServedAnswer& answer, RequestOutput& output) {
  answer.tokens.insert(answer.tokens.end(), output.token_ids.begin(), output.token_ids.end());
  for (PositionLogprobs& position : output.logprobs) {
    PositionLogprobs& kept = answer.logprobs.emplace_back(position);
    if (kept.top.size() > kServedAlternatives) kept.top.resize(kServedAlternatives);
    const auto asked = static_cast<std::size_t>(answer.logprobs_asked.value_or(0));
    if (position.top.size() > asked) position.top.resize(asked);
  }
  answer.cost = {.decode_ms_per_token = output.cost.decode_ms / static_cast<double>(std::max<std::size_t>(1, answer.logprobs.size())),
                 .num_preemptions = output.cost.num_preemptions};
  answer.request_id = output.request_id;
  answer.num_cached_tokens = output.usage.cached_tokens;
  answer.is_downgraded |= output.usage.kv.is_downgraded;
  if (!answer.logprobs_asked) output.logprobs.clear();
}

kv::ShadowRecord record_of(const ServedAnswer& answer, const std::optional<ShadowScore>& score) {
  kv::ShadowRecord record = {.request_id = answer.request_id,
                             .client_id = answer.client_id,
                             .tenant = answer.tenant,
                             .policy = answer.promise.policy,
                             .quality = std::string(name_of(is_exact(answer.promise) ? KvQuality::kExact : answer.kv.quality)),
                             .budget_share = answer.kv.budget,
                             .budget_bytes = answer.kv.budget_bytes,
                             .num_prompt_tokens = answer.num_prompt_tokens,
                             .num_cached_tokens = answer.num_cached_tokens,
                             .num_answer_tokens = std::ssize(answer.tokens) - answer.num_prompt_tokens,
                             .is_downgraded = answer.is_downgraded,
                             .is_scored = score && !is_untouched(answer.promise, *score)};
  if (!record.is_scored) return record;
  record.kl = score->kl;
  record.log_ratio = score->log_ratio;
  record.num_tokens_agreed = score->num_agreed;
  return record;
}

Request scoring_request(const ServedAnswer& answer) {
  Request request;
  request.prompt_token_ids = answer.tokens;
  request.sampling.temperature = 0.0f;
  request.sampling.max_tokens = 0;
  request.sampling.prompt_logprobs = kExactAlternatives;
  request.prompt_logprobs_from = answer.num_prompt_tokens;
  request.kv = {.policy = "none", .quality = KvQuality::kExact};
  request.adapter = answer.adapter;
  request.adapter_scale = answer.adapter_scale;
  request.adapter_hold = answer.adapter_hold;
  request.use_prefix_cache = false;
  request.priority = std::numeric_limits<std::int32_t>::max() / 2;
  request.start_within_ms = kStartWithinMs;
  return request;
}

}  // namespace kvasir::quality
