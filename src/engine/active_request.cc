#include "engine/active_request.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "engine/kv_params.h"

namespace kvasir {
namespace {

std::optional<sched::TimePoint> start_deadline_of(const Request& request, sched::TimePoint now) {
  if (request.start_within_ms <= 0) return std::nullopt;
  return now + std::chrono::milliseconds(request.start_within_ms);
}

}  // namespace

void ActiveChoice::append(const sched::SequenceUpdate& update, bool include_stop_token,
                          RequestOutput& output) {
  for (sched::SampledToken& sampled : update.tokens) {
    ++completion_tokens;
    output.token_ids.push_back(sampled.token);
    if (sampled.logprobs) output.logprobs.push_back(std::move(*sampled.logprobs));
    const bool ends = update.finish_reason == FinishReason::kStop && &sampled == &update.tokens.back();
    if (ends) output.stop_token = sampled.token;
    if (guide && ends) guide->end(sampled.token);
    if (guide && !ends) guide->push(sampled.token, text == nullptr ? 0 : text->num_bytes_of(sampled.token));
    if (ends && !include_stop_token) continue;
    if (append_text(sampled.token, output)) return;
    if (guide && !ends && ends_by_guide(output)) break;
  }
  if (output.finish_reason && text != nullptr) output.text += text->flush();
}

// An answer that is complete with its last token has ended, although there may be none left.
bool ActiveChoice::ends_by_guide(RequestOutput& output) const {
  if (std::optional<Error> error = guide->error()) {
    output.finish_reason = FinishReason::kError;
    output.error = std::move(error);
    return true;
  }
  if (!guide->must_end()) return false;
  output.finish_reason = FinishReason::kStop;
  return true;
}

// Detokenises a token; true when a stop string ends the answer with it.
bool ActiveChoice::append_text(TokenId token, RequestOutput& output) {
  if (text == nullptr) return false;
  OutputProcessor::Piece piece = text->push(token, completion_tokens, guide ? &*guide : nullptr);
  output.text += piece.text;
  if (!piece.stop_string) return false;
  output.finish_reason = FinishReason::kStop;
  output.stop_string = std::move(*piece.stop_string);
  output.stop_token = kNoToken;
  return true;
}

void begin_beam_search(ActiveRequest& active) {
  SamplingParams& params = active.request.sampling;
  if (params.beam_width == 0) return;
  const std::int32_t num_candidates = BeamSearch::num_candidates(params.beam_width, active.stop_tokens.size());
  active.beams.emplace(BeamSearch::Settings{.width = params.beam_width,
                                            .length_penalty = params.length_penalty,
                                            .max_tokens = *params.max_tokens,
                                            .min_tokens = params.min_tokens,
                                            .ends = active.stop_tokens,
                                            .num_logprobs = params.logprobs});
  params.temperature = 0.0f;
  params.logprobs = std::max(num_candidates, params.logprobs.value_or(0));
  active.takes_drafts = active.takes_forced_runs = false;
}

sched::SequenceRequest sequence_request(const ActiveRequest& active, std::span<const TokenId> eos_token_ids,
                                        std::int32_t expected_cached_tokens, sched::TimePoint now) {
  const Request& request = active.request;
  const SamplingParams& params = request.sampling;
  kv::KvPolicySettings kv_policy = policy_settings(request.kv);
  kv_policy.weights_version = active.adapter.version();
  if (active.beams) eos_token_ids = {};  // the search ends its beams itself
  return {
      .request_id = active.id,
      .prompt_token_ids = request.prompt_token_ids,
      .num_choices = std::max(params.n, params.beam_width),
      .priority = request.priority,
      .tenant = request.tenant,
      .adapter = active.adapter.entry == nullptr ? std::string() : active.adapter.entry->name,
      .cache_namespace = request.cache_namespace,
      .use_prefix_cache = request.use_prefix_cache,
      .expected_cached_tokens = expected_cached_tokens,
      .kv_policy = kv_policy,
      .client_id = request.client_id,
      .want_prompt_logits = params.prompt_logprobs.has_value() ||
                            static_cast<bool>(request.logits_observer) || request.pooling != Pooling::kNone,
      .first_prompt_logits = std::max(0, request.prompt_logprobs_from - 1),
      .stop = {.eos_token_ids = {eos_token_ids.begin(), eos_token_ids.end()},
               .stop_token_ids = active.beams ? std::vector<TokenId>() : params.stop_token_ids,
               .max_tokens = *params.max_tokens,
               .min_tokens = params.min_tokens},
      .start_deadline = start_deadline_of(request, now),
  };
}

std::optional<grammar::TokenMask> allowed_tokens_of(const SamplingParams& params, std::int32_t vocab_size) {
  if (params.allowed_token_ids.empty()) return std::nullopt;
  grammar::TokenMask mask(vocab_size);
  for (const TokenId token : params.allowed_token_ids) mask.set(token);
  return mask;
}

std::vector<float> embedding_of(const ActiveRequest& request, const model::PooledHead& head) {
  if (request.request.pooling == Pooling::kRank) return head.logits_of(request.embedding->mean());
  std::vector<float> vector = head.embedding_of(request.embedding->mean());
  if (const std::int32_t count = request.request.dimensions; count > 0) {
    vector.resize(static_cast<std::size_t>(count));
  }
  return runtime::unit_vector(vector);
}

}  // namespace kvasir
