#include "engine/request_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "base/printable.h"
#include "backend/registry.h"
#include "engine/kv_params.h"
#include "kv/cells/cell.h"

namespace kvasir {
namespace {

Status check_dimensions(const Request& request, const ModelInfo& info) {
  const std::int32_t limit = request.pooling == Pooling::kRank ? 0 : info.embedding_size;
  if (request.dimensions >= 0 && request.dimensions <= limit) return {};
  return make_error(ErrorKind::kUsage,
                    fmt::format("dimensions: must be between 0 (all) and {}, is {}", limit, request.dimensions),
                    "dimensions");
}

Status check_token_types(const Request& request, const ModelInfo& info) {
  const std::vector<std::uint8_t>& types = request.prompt_token_types;
  if (types.empty()) return {};
  if (types.size() != request.prompt_token_ids.size()) {
    return make_error(ErrorKind::kUsage,
                      fmt::format("token_types: must be as many as the prompt's tokens, {}, are {}",
                                  request.prompt_token_ids.size(), types.size()),
                      "token_types");
  }
  for (const std::uint8_t type : types) {
    if (type < info.num_token_types) continue;
    return make_error(
        ErrorKind::kUsage,
        fmt::format("token_types: must be below {}, as many as the model has, is {}", info.num_token_types, type),
        "token_types");
  }
  return {};
}

// An embedding is of the prompt alone.
Status check_pooling(const Request& request, const ModelInfo& info) {
  if (request.pooling == Pooling::kNone && info.is_encoder) {
    return make_error(ErrorKind::kUsage,
                      "model: it is an encoder, which gives embeddings or scores and generates no text", "model");
  }
  if (request.pooling == Pooling::kNone) return {};
  if (request.pooling == Pooling::kRank && info.num_labels == 0) {
    return make_error(ErrorKind::kUsage, "pooling: the model has no classifier, so it gives no scores", "pooling");
  }
  KVASIR_CHECKED(check_dimensions(request, info));
  KVASIR_CHECKED(check_token_types(request, info));
  const SamplingParams& sampling = request.sampling;
  if (sampling.max_tokens != 0) {
    const std::string given =
        sampling.max_tokens ? fmt::format("{}", *sampling.max_tokens) : std::string("not given");
    return make_error(ErrorKind::kUsage, fmt::format("pooling: max_tokens must be 0, is {}", given),
                      "max_tokens");
  }
  if (request.guide) {
    return make_error(ErrorKind::kUsage, "pooling: an embedding has no text that a guide could form", "guide");
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

Status check_beams(const Request& request) {
  if (request.sampling.beam_width == 0) return {};
  if (request.guide) {
    return make_error(ErrorKind::kUsage, "use_beam_search: a guide follows one text, so it does not go with beams", "use_beam_search");
  }
  if (is_compressed(request.kv)) {
    return make_error(ErrorKind::kUsage, "use_beam_search: beams share their KV as it is computed, so no kv_policy goes with them",
                      "use_beam_search");
  }
  return {};
}

}  // namespace

void apply_engine_defaults(Request& request, const EngineConfig& config, const ModelInfo& info) {
  if (request.pooling == Pooling::kOfModel) request.pooling = info.pooling;
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
  if (backend::is_gpu(info.device) && is_compressed(request.kv)) {
    return make_error(ErrorKind::kUnmet, fmt::format("kv_policy: {} keeps keys and values as they are computed, so none runs", info.device),
                      "kv_policy");
  }
  if (request.kv.policy == kv::name_of(kv::KvFormat::kK2pV2) && !info.has_key_components) {
    return make_error(ErrorKind::kUnmet, fmt::format("kv_policy: {} needs statistics of the model's keys; kvasir calibrate-kv makes them", request.kv.policy),
                      "kv_policy");
  }
  KVASIR_CHECKED(check_pooling(request, info));
  KVASIR_CHECKED(check_beams(request));
  if (request.guide && request.sampling.max_tokens == 0) {
    return make_error(ErrorKind::kUsage, "max_tokens: must be at least 1 for an answer under a guide, is 0", "max_tokens");
  }
  if (!request.sampling.stop.empty() && !has_tokenizer) {
    return make_error(ErrorKind::kUsage, "stop: the model has no tokenizer, only stop_token_ids work",
                      "stop");
  }
  if (request.guide && !request.sampling.allowed_token_ids.empty()) {
    return make_error(ErrorKind::kUsage, "allowed_token_ids: a guide says which tokens are allowed", "allowed_token_ids");
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
