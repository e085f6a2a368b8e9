#include "server/api/openai/answer_json.h"

#include <fmt/format.h>

#include <ctime>

#include "server/observe/kv_usage_json.h"

namespace kvasir::server::api {

AnswerHeader make_answer_header(ApiContext& context, const GenerationRequest& request,
                                std::string_view id_prefix) {
  return {.id = context.ids.next(id_prefix),
          .created_s = static_cast<std::int64_t>(std::time(nullptr)),
          .model = answering_name(context, request),
          .fingerprint = context.fingerprint,
          .include_usage = request.include_usage,
          .usage_in_every_chunk = request.usage_in_every_chunk};
}

JsonWriter& begin_answer(JsonWriter& json, const AnswerHeader& header, std::string_view object) {
  json.begin_object().member("id", header.id).member("object", object);
  json.member("created", header.created_s).member("model", header.model);
  return json.member("system_fingerprint", header.fingerprint);
}

void write_search(JsonWriter& json, std::string_view ended_by) {
  if (!ended_by.empty()) json.key("search").begin_object().member("ended_by", ended_by).end_object();
}

void write_usage(JsonWriter& json, const Usage& usage, std::int32_t num_reasoning_tokens) {
  json.begin_object();
  json.member("prompt_tokens", usage.prompt_tokens).member("completion_tokens", usage.completion_tokens);
  json.member("total_tokens", std::int64_t{usage.prompt_tokens} + usage.completion_tokens);
  json.key("prompt_tokens_details").begin_object().member("cached_tokens", usage.cached_tokens).end_object();
  const bool has_guesses = usage.had_prediction && usage.draft_tokens > 0;
  if (num_reasoning_tokens > 0 || has_guesses) {
    json.key("completion_tokens_details").begin_object();
    if (num_reasoning_tokens > 0) json.member("reasoning_tokens", num_reasoning_tokens);
    if (has_guesses) {
      json.member("accepted_prediction_tokens", usage.draft_tokens_accepted);
      json.member("rejected_prediction_tokens", usage.draft_tokens - usage.draft_tokens_accepted);
    }
    json.end_object();
  }
  if (usage.search_tokens > 0) json.member("search_tokens", usage.search_tokens);
  observe::member_kv_usage(json, usage.kv);
  json.end_object();
}

void end_chunk(JsonWriter& json, const AnswerHeader& header, const Usage& usage,
               std::int32_t num_reasoning_tokens) {
  if (header.usage_in_every_chunk) {
    json.key("usage");
    write_usage(json, usage, num_reasoning_tokens);
  } else if (header.include_usage) {
    json.member_null("usage");
  }
  json.end_object();
}

std::string usage_chunk(const AnswerHeader& header, std::string_view object, const Usage& usage,
                        std::int32_t num_reasoning_tokens) {
  std::string chunk;
  JsonWriter json(chunk);
  begin_answer(json, header, object).key("choices").begin_array().end_array();
  json.key("usage");
  write_usage(json, usage, num_reasoning_tokens);
  json.end_object();
  return chunk;
}

std::string_view finish_reason_name(FinishReason reason) {
  return reason == FinishReason::kLength ? "length" : "stop";
}

std::string system_fingerprint(const ModelInfo& model) {
  // FNV-1a, 64 bits.
  std::uint64_t hash = 0xCBF29CE484222325u;
  for (const char c :
       fmt::format("{}/{}/{}/{}", model.name, model.architecture, model.quantization, model.weight_bytes)) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  }
  return fmt::format("kvasir-{:016x}", hash);
}

}  // namespace kvasir::server::api
