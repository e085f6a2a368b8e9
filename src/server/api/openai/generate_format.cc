#include "server/api/openai/generate_format.h"

#include <optional>
#include <span>
#include <string_view>

#include "base/json_writer.h"
#include "server/api/openai/answer_json.h"
#include "server/observe/kv_usage_json.h"

namespace kvasir::server::api {
namespace {

std::string object(std::string_view id, std::string_view text, std::span<const TokenId> token_ids,
                   std::optional<FinishReason> finish_reason, const Usage& usage) {
  std::string body;
  JsonWriter json(body);
  json.begin_object().member("id", id).member("text", text).key("token_ids").begin_array();
  for (const TokenId token : token_ids) json.value(token);
  json.end_array();
  if (finish_reason) {
    json.member("finish_reason", finish_reason_name(*finish_reason));
  } else {
    json.member_null("finish_reason");
  }
  json.member("prompt_tokens", usage.prompt_tokens).member("completion_tokens", usage.completion_tokens);
  json.member("cached_tokens", usage.cached_tokens);
  observe::member_kv_usage(json, usage.kv);
  json.end_object();
  return body;
}

}  // namespace

std::string GenerateFormat::whole(const std::vector<ChoiceResult>& choices, const Usage& usage) {
  const ChoiceResult& choice = choices.front();
  return object(id_, choice.text, choice.token_ids, choice.finish_reason, usage);
}

void GenerateFormat::append_events(std::int32_t, const RequestOutput& output, const Usage& usage,
                                   http::Events& events) {
  events.push_back({.data = object(id_, output.text, output.token_ids, output.finish_reason, usage)});
}

}  // namespace kvasir::server::api
