#include "server/api/anthropic/messages_request.h"

#include <fmt/format.h>

#include <array>

#include "server/api/anthropic/conversation.h"
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
  if (!request.tool_names.empty()) request.tools = std::move(tools.list);
  return {};
}

ApiStatus read_tool_choice(const FieldInput& field, MessagesRequest& request) {
  KVASIR_TRY(const JsonObject object, object_of(field));
  KVASIR_TRY(request.tool_choice, required_string(field, object, "type"));
  if (const auto disabled = find_member(object, "disable_parallel_tool_use")) {
    KVASIR_TRY(const bool one_at_most, boolean_of(field.at("disable_parallel_tool_use", *disabled)));
    request.parallel_tool_calls = !one_at_most;
  }
  if (request.tool_choice == "none" || request.tool_choice == "auto") return {};
  if (request.tool_choice == "any" || request.tool_choice == "tool")
    return not_supported(field.name, "a forced tool");
  const std::string path = field.name + ".type";
  return bad_request(path + " must be \"auto\", \"any\", \"tool\" or \"none\"", path);
}

ApiStatus read_stop_sequences(const FieldInput& field, MessagesRequest& request) {
  KVASIR_CHECKED(array_of(field));
  return read_stop(field, request);
}

ApiStatus read_thinking(const FieldInput& field, MessagesRequest&) {
  KVASIR_TRY(const JsonObject object, object_of(field));
  KVASIR_TRY(const std::string type, required_string(field, object, "type"));
  if (type == "disabled") return {};
  return not_supported(field.name, "anything but \"disabled\"");
}

// The conversation is read when the system prompt that goes before it is known.
constexpr auto kReadLater = &read_later<MessagesRequest>;
constexpr auto kUnsupported = &read_unsupported<MessagesRequest>;

constexpr auto kFields = std::to_array<Field<MessagesRequest>>({
    {"messages", "array", {}, "the conversation: text, calls of tools and their results", kReadLater},
    {"system", "string or array of text blocks", {}, "what goes before it", read_system},
    {"tools", "array", {}, "shown to the model by the template, also with tool_choice none", read_tool_list},
    {"tool_choice",
     "object",
     {},
     "type \"auto\" (default) where the model's template shows tools, or \"none\"; disable_parallel_tool_use",
     read_tool_choice},
    {"stop_sequences",
     "array of strings",
     {},
     "texts that end the answer and are left out",
     read_stop_sequences},
    {"thinking", "object", {}, "only type \"disabled\" so far", read_thinking},
    {"cache_control", "object", {}, "accepted; prefixes are cached anyway", read_unused<object_of>},
    {"inference_geo", "string", {}, "accepted", read_unused<string_of>},
    {"container", "string or object", {}, "not yet", kUnsupported},
    {"context_management", "object", {}, "not yet", kUnsupported},
    {"mcp_servers", "array", {}, "never: no request makes the server fetch", kUnsupported},
    {"output_config", "object", {}, "not yet", kUnsupported},
    {"output_format", "object", {}, "not yet", kUnsupported},
});

ApiStatus read_messages_of(JsonObject root, const Limits& limits, MessagesRequest& request) {
  const auto messages = find_member(root, "messages");
  if (!messages) return bad_request("messages is missing", "messages", "missing_parameter");
  KVASIR_TRY(request.messages, read_conversation({"messages", *messages, limits}, request.system,
                                                 request.conversation_warnings));
  request.continue_final_message = ends_with_assistant(request.messages);
  return {};
}

// Refuses fields of other endpoints that a message cannot give.
ApiStatus check_single(const MessagesRequest& request) {
  KVASIR_CHECKED(check_generation_request(request));
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
  KVASIR_CHECKED(read_messages_of(document.root(), limits, request));
  append_warnings(request.conversation_warnings, warnings);
  KVASIR_CHECKED(check_single(request));
  return request;
}

ApiResult<MessagesRequest> parse_messages_request(std::string_view body, const Limits& limits,
                                                  Warnings& warnings) {
  KVASIR_TRY(MessagesRequest request, parse_count_tokens_request(body, limits, warnings));
  if (!request.sampling.max_tokens)
    return bad_request("max_tokens is missing", "max_tokens", "missing_parameter");
  if (*request.sampling.max_tokens < 1) return bad_request("max_tokens must be at least 1", "max_tokens");
  return request;
}

}  // namespace kvasir::server::api
