#include "server/api/openai/chat_fields.h"

#include <fmt/format.h>

#include <array>
#include <limits>

#include "server/api/openai/messages.h"
#include "server/api/tools.h"

namespace kvasir::server::api {
namespace {

using jinja::Value;

constexpr double kMaxInt32 = std::numeric_limits<std::int32_t>::max();

ApiStatus read_message_list(const FieldInput& field, ChatRequest& request) {
  KVASIR_TRY(request.messages, read_messages(field, request.conversation_warnings));
  return {};
}

ApiStatus read_tool_list(const FieldInput& field, ChatRequest& request) {
  KVASIR_TRY(Tools tools, read_tools(field, kChatTools));
  request.tool_names = std::move(tools.names);
  if (!request.tool_names.empty()) request.tools = std::move(tools.list);
  return {};
}

ApiStatus read_tool_choice(const FieldInput& field, ChatRequest& request) {
  if (!field.json.is_string()) return not_supported(field.name, "a forced tool");
  KVASIR_TRY(request.tool_choice, string_of(field));
  if (request.tool_choice == "none" || request.tool_choice == "auto") return {};
  if (request.tool_choice == "required") return not_supported(field.name, "\"required\"");
  return bad_request(field.name + " must be \"none\", \"auto\", \"required\" or a function", field.name);
}

ApiStatus read_top_logprobs(const FieldInput& field, ChatRequest& request) {
  KVASIR_TRY(const std::int64_t count, integer_within(field, field.limits.top_logprobs));
  request.top_logprobs = static_cast<std::int32_t>(count);
  return {};
}

// Only the names that the template gets from elsewhere are kept from it.
ApiStatus read_template_kwargs(const FieldInput& field, ChatRequest& request) {
  KVASIR_TRY(const JsonObject kwargs, object_of(field));
  constexpr std::array<std::string_view, 4> kTaken = {"messages", "tools", "documents",
                                                      "add_generation_prompt"};
  for (const auto [key, json] : kwargs) {
    for (const std::string_view taken : kTaken) {
      if (key == taken) {
        return bad_request(fmt::format("{}.{} has a place of its own in the request", field.name, taken),
                           field.name);
      }
    }
    request.template_kwargs.emplace_back(std::string(key), to_template_value(json));
  }
  return {};
}

ApiStatus read_modalities(const FieldInput& field, ChatRequest&) {
  KVASIR_TRY(const JsonArray modalities, array_of(field));
  std::size_t index = 0;
  for (const JsonElement json : modalities) {
    KVASIR_TRY(const std::string modality, string_of(field.at(index++, json)));
    if (modality != "text") return not_supported(field.name, "anything but text");
  }
  return {};
}

ApiStatus read_function_call(const FieldInput& field, ChatRequest&) {
  if (field.json.is_string() && field.json.get_string().value() == "none") return {};
  return not_supported(field.name, "a function call");
}

constexpr auto kUnsupported = &read_unsupported<ChatRequest>;

constexpr auto kFields = std::to_array<Field<ChatRequest>>({
    {"messages", "array", {}, "the conversation", read_message_list},
    {"max_completion_tokens",
     "integer",
     {1, kMaxInt32},
     "longest answer; replaces max_tokens",
     read_integer<&ChatRequest::max_completion_tokens>},
    {"logprobs", "boolean", {}, "the log probability of each token", read_boolean<&ChatRequest::logprobs>},
    {"top_logprobs", "integer", {0, kMaxInt32}, "alternatives for each token", read_top_logprobs},
    {"tools", "array", {}, "shown to the model by the template, also with tool_choice none", read_tool_list},
    {"tool_choice",
     "string or object",
     {},
     "\"auto\" (default) where the model's template shows tools, or \"none\"",
     read_tool_choice},
    {"parallel_tool_calls",
     "boolean",
     {},
     "false: at most one call in an answer, the first",
     read_boolean<&ChatRequest::parallel_tool_calls>},
    {"add_generation_prompt",
     "boolean",
     {},
     "end the prompt where the answer begins",
     read_boolean<&ChatRequest::add_generation_prompt>},
    {"continue_final_message",
     "boolean",
     {},
     "the answer goes on where the last message ends",
     read_boolean<&ChatRequest::continue_final_message>},
    {"chat_template_kwargs", "object", {}, "variables for the template", read_template_kwargs},
    {"modalities", "array of strings", {}, "only text", read_modalities},
    {"function_call", "string or object", {}, "only \"none\"; superseded by tool_choice", read_function_call},

    {"store", "boolean", {}, "accepted; nothing is stored", read_unused<boolean_of>},
    {"prediction", "object", {}, "accepted", read_unused<object_of>},
    {"reasoning_effort", "string", {}, "accepted", read_unused<string_of>},
    {"verbosity", "string", {}, "accepted", read_unused<string_of>},
    {"prompt_cache_key", "string", {}, "accepted", read_unused<string_of>},
    {"prompt_cache_retention", "string", {}, "accepted", read_unused<string_of>},

    {"chat_template", "string", {}, "not yet", kUnsupported},
    {"documents", "array", {}, "not yet", kUnsupported},
    {"echo", "boolean", {}, "not yet", kUnsupported},
    {"functions", "array", {}, "superseded by tools", kUnsupported},
    {"audio", "object", {}, "not yet", kUnsupported},
    {"web_search_options", "object", {}, "never: no request makes the server fetch", kUnsupported},
});

ApiStatus check(const ChatRequest& request) {
  KVASIR_CHECKED(check_generation_request(request));
  if (request.messages.is_undefined())
    return bad_request("messages is missing", "messages", "missing_parameter");
  if (request.sampling.max_tokens == 0) return bad_request("max_tokens must be at least 1", "max_tokens");
  if (request.top_logprobs > 0 && !request.logprobs) {
    return bad_request("top_logprobs needs logprobs: true", "top_logprobs");
  }
  return {};
}

}  // namespace

std::span<const Field<ChatRequest>> chat_fields() { return kFields; }

ApiResult<ChatRequest> parse_chat_request(std::string_view body, const Limits& limits, Warnings& warnings) {
  KVASIR_TRY(const JsonDocument document, JsonDocument::parse(body, limits));
  ChatRequest request;
  KVASIR_CHECKED(read_fields(document.root(), generation_fields(), chat_fields(), limits, request, warnings));
  KVASIR_CHECKED(check(request));
  append_warnings(request.conversation_warnings, warnings);
  if (request.max_completion_tokens) request.sampling.max_tokens = request.max_completion_tokens;
  if (request.logprobs) request.sampling.logprobs = request.top_logprobs;
  return request;
}

}  // namespace kvasir::server::api
