#include "engine/request_check.h"

#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "engine/kv_params.h"

namespace kvasir {
namespace {

// An embedding is of the prompt alone.
Status check_pooling(const Request& request) {
  if (request.pooling == Pooling::kNone) return {};
  const SamplingParams& sampling = request.sampling;
  if (sampling.max_tokens != 0) {
    const std::string given =
        sampling.max_tokens ? fmt::format("{}", *sampling.max_tokens) : std::string("not given");
    return make_error(ErrorKind::kUsage, fmt::format("pooling: max_tokens must be 0, is {}", given),
                      "max_tokens");
  }
  if (sampling.n != 1) {
    return make_error(ErrorKind::kUsage, fmt::format("pooling: n must be 1, is {}", sampling.n), "n");
  }
  if (sampling.prompt_logprobs || request.logits_observer) {
    return make_error(ErrorKind::kUsage,
                      "pooling: an embedding has no logits, prompt_logprobs must not be given",
                      "prompt_logprobs");
  }
  return {};
}

}  // namespace

void apply_engine_defaults(Request& request, const EngineConfig& config, const ModelInfo& info) {
  if (request.start_within_ms == 0 && !request.is_admitted) request.start_within_ms = config.queue_timeout_ms;
  if (!request.sampling.max_tokens) {
    request.sampling.max_tokens = info.max_model_len_tokens -
                                  static_cast<std::int32_t>(request.prompt_token_ids.size());
  }
}

Status check_request(const Request& request, const ModelInfo& info, bool has_tokenizer) {
  if (request.prompt_token_ids.empty())
    return make_error(ErrorKind::kUsage, "prompt: must not be empty", "prompt");
  for (TokenId id : request.prompt_token_ids) {
    if (id < 0 || id >= info.vocab_size) {
      return make_error(
          ErrorKind::kUsage,
          fmt::format("prompt: token id {} is outside the vocabulary of {}", id, info.vocab_size), "prompt");
    }
  }
  KVASIR_CHECKED(validate(request.sampling, info.vocab_size));
  KVASIR_CHECKED(validate(request.kv));
  KVASIR_CHECKED(check_pooling(request));
  if (!request.sampling.stop.empty() && !has_tokenizer) {
    return make_error(ErrorKind::kUsage, "stop: the model has no tokenizer, only stop_token_ids work",
                      "stop");
  }
  const auto prompt = static_cast<std::int64_t>(request.prompt_token_ids.size());
  const std::int64_t limit = info.max_model_len_tokens;
  const std::int64_t wanted = request.sampling.max_tokens.value_or(1);
  if (prompt + wanted > limit) {
    return make_error(
        ErrorKind::kUnmet,
        fmt::format("context: {} prompt tokens and {} completion tokens exceed the limit of {} tokens",
                    prompt, wanted, limit),
        request.sampling.max_tokens ? "max_tokens" : "prompt");
  }
  return {};
}

}  // namespace kvasir
