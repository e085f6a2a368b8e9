#include "server/api/generation_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/kv_params.h"

namespace kvasir::server::api {

namespace {

ApiStatus check_best_of(const GenerationRequest& request) {
  const std::int32_t n = request.sampling.n;
  if (request.best_of == 0 || (request.best_of == n && !request.is_search)) return {};
  const char* const field = request.is_search ? "search.n" : "best_of";
  if (request.best_of < n) {
    return bad_request(fmt::format("{} must be at least n, {}, is {}", field, n, request.best_of), field);
  }
  if (!request.stream || request.use_beam_search) return {};
  return bad_request(fmt::format("{}: of {} answers the best are known at the end, so not with stream: true", field,
                                 request.best_of),
                     field);
}

}  // namespace

ApiStatus check_generation_request(GenerationRequest& request, Warnings& warnings) {
  if (request.has_stream_options && !request.stream) {
    warnings.add("stream_options is left out: the answer is no stream");
    request.include_usage = request.usage_in_every_chunk = false;
  }
  if (request.stream && request.sampling.prompt_logprobs) {
    return bad_request("prompt_logprobs is not available with stream: true", "prompt_logprobs");
  }
  KVASIR_CHECKED(check_best_of(request));
  if (request.use_beam_search && request.search_limits.max_ms > 0) {
    warnings.add("search.max_ms is left out: beams are known at their end");
    request.search_limits.max_ms = 0;
  }
  if (request.bad_words.empty()) return {};
  if (!request.guide) request.guide = Guide{.kind = Guide::Kind::kText, .field = "bad_words"};
  request.guide->excluded = request.bad_words;
  return {};
}

Request engine_request(const GenerationRequest& request, const auth::Tenant& tenant, const KvParams& kv,
                       std::vector<TokenId> prompt_token_ids) {
  Request wanted;
  wanted.kv = kv;
  if (request.kv_policy) wanted.kv.policy = *request.kv_policy;
  if (request.kv_quality) {
    wanted.kv.quality = *request.kv_quality;
    wanted.kv.max_lost_share.reset();  // the server's is instead of the server's quality
  }
  wanted.kv.learns = request.kv_learn;
  if (request.kv_max_lost_share) wanted.kv.max_lost_share = request.kv_max_lost_share;
  if (request.kv_budget) {
    wanted.kv.budget = 1.0;
    wanted.kv.budget_bytes = 0;
    static_cast<void>(set_kv_budget(*request.kv_budget, wanted.kv));  // read_kv_budget has tried it
  }
  wanted.prompt_token_ids = std::move(prompt_token_ids);
  wanted.guide = request.guide;
  wanted.sampling = request.sampling;
  if (request.use_beam_search) {
    wanted.sampling.beam_width = num_beams(request);
  } else if (request.best_of > request.sampling.n || request.is_search) {
    wanted.sampling.n = request.best_of;
    wanted.sampling.logprobs = wanted.sampling.logprobs.value_or(0);  // to rank them by
  }
  wanted.cache_namespace =
      tenant.name.empty() ? request.cache_salt : tenant.key_id + "\n" + request.cache_salt;
  wanted.tenant = tenant.name;
  wanted.priority = request.priority;
  wanted.speculates = request.speculates;
  return wanted;
}

std::optional<std::string> cut_to_context(SamplingParams& sampling, std::int64_t num_prompt_tokens,
                                          std::int32_t max_model_len_tokens) {
  const std::int64_t left = max_model_len_tokens - num_prompt_tokens;
  if (left < 1 || !sampling.max_tokens || *sampling.max_tokens <= left) return std::nullopt;
  const std::int32_t wanted = *sampling.max_tokens;
  sampling.max_tokens = static_cast<std::int32_t>(left);
  sampling.min_tokens = std::min(sampling.min_tokens, *sampling.max_tokens);
  return fmt::format("max_tokens: {} was cut to {}, what the context of {} tokens has left", wanted, left,
                     max_model_len_tokens);
}

ApiStatus check_context(const Request& request, std::int32_t max_model_len_tokens,
                        std::string_view prompt_field) {
  const auto prompt = std::ssize(request.prompt_token_ids);
  const std::int64_t wanted = request.sampling.max_tokens.value_or(1);
  if (prompt + wanted <= max_model_len_tokens) return {};
  // Clients know the reason by these words: litellm, which then asks a model with more, by the first ones,
  // LangChain by "prompt is too long".
  std::string message = fmt::format(
      "This model's maximum context length is {} tokens, the prompt is too long", max_model_len_tokens);
  if (prompt >= max_model_len_tokens) {
    const bool is_of_list = prompt_field.ends_with(']');
    message += fmt::format(": {} has {}", is_of_list ? prompt_field : "it", prompt);
  } else {
    message += fmt::format(" for an answer of {} tokens: its {} make {} too many", wanted, prompt,
                           prompt + wanted - max_model_len_tokens);
  }
  return bad_request(std::move(message), std::string(prompt_field), "context_length_exceeded");
}

}  // namespace kvasir::server::api
