#include "server/api/anthropic/messages_request.h"

#include <fmt/format.h>

#include <array>

#include "server/api/anthropic/conversation.h"
#include "server/api/guide_fields.h"
#include "server/api/thinking.h"
#include "server/api/tool_choice.h"
#include "server/api/tools.h"

namespace kvasir::server::api {
namespace {

ApiStatus read_system(const FieldInput& field, MessagesRequest& request) {
  KVASIR_TRY(request.system, read_text_blocks(field));
  return {};
}

ApiStatus read_tool_list(const FieldInput& field, MessagesRequest& request) {
  KVASIR_TRY(Tools tools, read_tools(field, kAnthropicTools));
  request.tool_names = std::move(tools.names);
  request.tool_schemas = std::move(tools.schemas);
  if (!request.tool_names.empty()) request.tools = std::move(tools.list);
  return {};
}

ApiStatus read_tool_choice(const FieldInput& field, MessagesRequest& request) {
  return read_anthropic_tool_choice(field, request);
}

ApiStatus read_stop_sequences(const FieldInput& field, MessagesRequest& request) {
  if (asks_for_nothing(field.json)) return {};
  KVASIR_CHECKED(array_of(field));
  return read_stop(field, request);
}

ApiStatus read_thinking_wish(const FieldInput& field, MessagesRequest& request) {
  return read_thinking(field, request);
}

// A schema that the answer must have; {} and null are none.
ApiStatus read_output_format(const FieldInput& field, MessagesRequest& request) {
  if (asks_for_nothing(field.json)) return {};
  return read_response_format(field, request);
}

ApiStatus read_output_config(const FieldInput& field, MessagesRequest& request) {
  if (!field.json.is_object()) {
    warn_left_out(field);
    return {};
  }
  const JsonObject members = field.json.get_object().value();
  for (const auto [name, json] : members) {
    if (json.is_null()) continue;
    FieldInput member = field.at(name, json);
    member.meaning = "left out: it is not known here";
    if (name == "format") {
      KVASIR_CHECKED(read_output_format(member, request));
    } else if (name == "effort" && json.is_string()) {
      read_effort(member, json.get_string().value(), request);
    } else {
      warn_left_out(member);
    }
  }
  return {};
}

// A conversation that the server keeps: one that begins has said all.
ApiStatus read_thread(const FieldInput& field, MessagesRequest&) {
  if (field.json.is_object()) {
    const auto type = find_member(field.json.get_object().value(), "type");
    const bool continues = type && type->is_string() && type->get_string().value() == "continue";
    if (continues) return not_supported(field.name, "a stored conversation");
  }
  warn_left_out(field);
  return {};
}

// The conversation is read when the system prompt that goes before it is known.
constexpr auto kReadLater = &read_later<MessagesRequest>;
constexpr auto kLeftOut = &read_ignored<MessagesRequest>;

constexpr auto kFields = std::to_array<Field<MessagesRequest>>({
    {"messages", "array", {}, "the conversation: text, calls of tools and their results", kReadLater},
    {"system", "string or array of text blocks", {}, "what goes before it", read_system},
    {"tools", "array", {}, "shown to the model by the template, also with tool_choice none", read_tool_list},
    {"tool_choice",
     "object",
     {},
     "type \"auto\" (default), \"any\", \"tool\" with a name, or \"none\"; disable_parallel_tool_use",
     read_tool_choice},
    {"stop_sequences",
     "array of strings",
     {},
     "texts that end the answer and are left out",
     read_stop_sequences},
    {"output_config",
     "object",
     {},
     "format: a json_schema for the answer; effort is told to a template that reads it",
     read_output_config},
    {"thinking",
     "object",
     {},
     "type enabled or disabled, budget_tokens: told to the template; disabled leaves thinking blocks out",
     read_thinking_wish},
    {"cache_control", "object", {}, "accepted; prefixes are cached anyway", read_unused<object_of>},
    {"inference_geo", "string", {}, "accepted", read_unused<string_of>},
    {"user_profile_id", "string", {}, "accepted", read_unused<string_of>},
    {"workspace_id", "string", {}, "accepted", read_unused<string_of>},
    {"anthropic_version", "string", {}, "accepted", read_unused<string_of>},
    {"anthropic_beta", "array", {}, "accepted", read_unused<array_of>},
    {"betas", "array", {}, "accepted", read_unused<array_of>},
    {"billing_policy", "object", {}, "accepted; nothing is billed", read_unused<object_of>},
    {"fallback_credit_token", "string", {}, "accepted; nothing is billed", read_unused<string_of>},
    {"speed", "string", {}, "left out: there is one speed", read_ignored_unless<"standard">},
    {"container", "string or object", {}, "left out: the server runs no code", kLeftOut},
    {"context_management", "object", {}, "left out: a conversation is never cut", kLeftOut},
    {"compaction", "object", {}, "left out: a conversation is never cut", kLeftOut},
    {"diagnostics", "object", {}, "left out: no request is remembered", kLeftOut},
    {"fallbacks", "array", {}, "left out: there is one model", kLeftOut},
    {"mcp_servers", "array", {}, "left out: no request makes the server fetch", kLeftOut},
    {"thread", "object", {}, "left out: nothing is stored; refused where it continues", read_thread},
    {"output_format", "object", {}, "another place of output_config.format", read_output_format},
});

ApiStatus read_messages_of(JsonObject root, const Limits& limits, MessagesRequest& request,
                           Warnings& warnings) {
  const auto messages = find_member(root, "messages");
  if (!messages) return bad_request("messages is missing", "messages", "missing_parameter");
  const FieldInput field{"messages", *messages, limits, {}, &warnings};
  KVASIR_TRY(request.messages, read_conversation(field, request.system, warnings));
  request.continue_final_message = ends_with_assistant(request.messages);
  return {};
}

// Refuses fields of other endpoints that a message cannot give.
ApiStatus check_single(MessagesRequest& request, Warnings& warnings) {
  KVASIR_CHECKED(check_generation_request(request, warnings));
  if (request.sampling.n != 1) return bad_request("n: a message is one answer", "n");
  if (request.sampling.prompt_logprobs) return not_supported("prompt_logprobs", "it in a message");
  return {};
}

}  // namespace

std::span<const Field<MessagesRequest>> messages_fields() { return kFields; }

ApiResult<MessagesRequest> parse_count_tokens_request(std::string_view body, const Limits& limits,
                                                      Warnings& warnings) {
  KVASIR_TRY(const JsonDocument document, JsonDocument::parse(body, limits));
  MessagesRequest request;
  KVASIR_CHECKED(
      read_fields(document.root(), generation_fields(), messages_fields(), limits, request, warnings));
  KVASIR_CHECKED(read_messages_of(document.root(), limits, request, warnings));
  KVASIR_CHECKED(check_single(request, warnings));
  KVASIR_CHECKED(keep_allowed_tools(request, warnings));
  return request;
}

ApiResult<MessagesRequest> parse_messages_request(std::string_view body, const Limits& limits,
                                                  Warnings& warnings) {
  KVASIR_TRY(MessagesRequest request, parse_count_tokens_request(body, limits, warnings));
  if (!request.sampling.max_tokens && !request.is_unbounded)
    return bad_request("max_tokens is missing", "max_tokens", "missing_parameter");
  return request;
}

}  // namespace kvasir::server::api
