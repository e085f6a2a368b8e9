#include "server/api/responses/responses_request.h"

#include <array>
#include <limits>

#include "server/api/conversation_input.h"
#include "server/api/responses/input_items.h"
#include "server/api/tools.h"

namespace kvasir::server::api {
namespace {

constexpr double kMaxInt32 = std::numeric_limits<std::int32_t>::max();
constexpr std::string_view kWantsLogprobs = "message.output_text.logprobs";

ApiStatus read_tool_list(const FieldInput& field, ResponsesRequest& request) {
  KVASIR_TRY(Tools tools, read_tools(field, kResponsesTools));
  request.tools_json = simdjson::minify(field.json);
  request.tool_names = std::move(tools.names);
  if (!request.tool_names.empty()) request.tools = std::move(tools.list);
  return {};
}

ApiStatus read_tool_choice(const FieldInput& field, ResponsesRequest& request) {
  if (!field.json.is_string()) return not_supported(field.name, "a forced tool");
  KVASIR_TRY(request.tool_choice, string_of(field));
  if (request.tool_choice == "none" || request.tool_choice == "auto") return {};
  if (request.tool_choice == "required") return not_supported(field.name, "\"required\"");
  return bad_request(field.name + " must be \"none\", \"auto\", \"required\" or a function", field.name);
}

ApiStatus read_parallel_calls(const FieldInput& field, ResponsesRequest& request) {
  KVASIR_TRY(request.parallel_tool_calls, boolean_of(field));
  return {};
}

ApiStatus read_metadata(const FieldInput& field, ResponsesRequest& request) {
  KVASIR_CHECKED(object_of(field));
  request.metadata_json = simdjson::minify(field.json);
  return {};
}

ApiStatus read_text(const FieldInput& field, ResponsesRequest&) {
  KVASIR_TRY(const JsonObject object, object_of(field));
  const auto format = find_member(object, "format");
  if (!format) return {};
  const FieldInput input = field.at("format", *format);
  KVASIR_TRY(const JsonObject format_object, object_of(input));
  KVASIR_TRY(const std::string type, required_string(input, format_object, "type"));
  if (type == "text") return {};
  return not_supported(input.name, "anything but \"text\"");
}

ApiStatus read_include(const FieldInput& field, ResponsesRequest& request) {
  KVASIR_TRY(const JsonArray wanted, array_of(field));
  std::size_t index = 0;
  for (const JsonElement item : wanted) {
    KVASIR_TRY(const std::string name, string_of(field.at(index++, item)));
    if (name == kWantsLogprobs) request.logprobs = true;
  }
  return {};
}

ApiStatus read_top_logprobs(const FieldInput& field, ResponsesRequest& request) {
  KVASIR_TRY(const std::int64_t count, integer_within(field, field.limits.top_logprobs));
  request.top_logprobs = static_cast<std::int32_t>(count);
  if (count > 0) request.logprobs = true;
  return {};
}

ApiStatus read_truncation(const FieldInput& field, ResponsesRequest&) {
  KVASIR_TRY(const std::string truncation, string_of(field));
  if (truncation == "disabled") return {};
  return not_supported(field.name, "anything but \"disabled\"");
}

constexpr auto kUnsupported = &read_unsupported<ResponsesRequest>;
// The conversation is read when the instructions that go before it are known.
constexpr auto kReadLater = &read_later<ResponsesRequest>;

constexpr auto kFields = std::to_array<Field<ResponsesRequest>>({
    {"input", "string or array of items", {}, "messages, calls of functions and their results", kReadLater},
    {"instructions",
     "string",
     {},
     "a system message before it",
     read_string<&ResponsesRequest::instructions>},
    {"max_output_tokens",
     "integer",
     {1, kMaxInt32},
     "longest answer",
     read_integer<&ResponsesRequest::max_output_tokens>},
    {"tools", "array", {}, "functions, shown to the model by the template", read_tool_list},
    {"tool_choice",
     "string or object",
     {},
     "\"auto\" (default) where the model's template shows tools, or \"none\"",
     read_tool_choice},
    {"parallel_tool_calls",
     "boolean",
     {},
     "false: at most one call in an answer, the first",
     read_parallel_calls},
    {"text", "object", {}, "only the format \"text\" so far", read_text},
    {"include",
     "array of strings",
     {},
     "\"message.output_text.logprobs\"; others change nothing",
     read_include},
    {"top_logprobs", "integer", {0, kMaxInt32}, "alternatives for each token", read_top_logprobs},
    {"truncation", "string", {}, "only \"disabled\"", read_truncation},
    {"metadata", "object", {}, "comes back in the answer", read_metadata},

    {"store", "boolean", {}, "accepted; nothing is stored", read_unused<boolean_of>},
    {"reasoning", "object", {}, "accepted", read_unused<object_of>},
    {"max_tool_calls",
     "integer",
     {},
     "accepted; it is for tools that run in the server",
     read_unused<integer_of>},
    {"moderation", "object", {}, "accepted", read_unused<object_of>},
    {"prompt_cache_key", "string", {}, "accepted", read_unused<string_of>},
    {"prompt_cache_options", "object", {}, "accepted", read_unused<object_of>},
    {"prompt_cache_retention", "string", {}, "accepted", read_unused<string_of>},

    {"previous_response_id", "string", {}, "never: nothing is stored; send what was said", kUnsupported},
    {"conversation", "string or object", {}, "never: nothing is stored", kUnsupported},
    {"background", "boolean", {}, "never: nothing is stored", kUnsupported},
    {"prompt", "object", {}, "never: nothing is stored", kUnsupported},
    {"context_management", "array", {}, "not yet", kUnsupported},
});

ApiStatus check(const ResponsesRequest& request) {
  KVASIR_CHECKED(check_generation_request(request));
  if (request.sampling.n != 1) return bad_request("n: a response is one answer", "n");
  if (request.sampling.max_tokens == 0) return bad_request("max_tokens must be at least 1", "max_tokens");
  if (request.sampling.prompt_logprobs) return not_supported("prompt_logprobs", "it in a response");
  return {};
}

}  // namespace

std::span<const Field<ResponsesRequest>> responses_fields() { return kFields; }

ApiResult<ResponsesRequest> parse_responses_request(std::string_view body, const Limits& limits,
                                                    Warnings& warnings) {
  KVASIR_TRY(const JsonDocument document, JsonDocument::parse(body, limits));
  ResponsesRequest request;
  KVASIR_CHECKED(
      read_fields(document.root(), generation_fields(), responses_fields(), limits, request, warnings));
  const auto input = find_member(document.root(), "input");
  if (!input) return bad_request("input is missing", "input", "missing_parameter");
  KVASIR_TRY(request.messages,
             read_input({"input", *input, limits}, request.instructions, request.conversation_warnings));
  KVASIR_CHECKED(check(request));
  append_warnings(request.conversation_warnings, warnings);
  if (request.max_output_tokens) request.sampling.max_tokens = request.max_output_tokens;
  if (request.logprobs) request.sampling.logprobs = request.top_logprobs;
  return request;
}

}  // namespace kvasir::server::api
