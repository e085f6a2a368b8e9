#include "server/api/responses/responses_request.h"

#include <fmt/format.h>

#include <array>
#include <limits>

#include "base/printable.h"
#include "server/api/conversation_input.h"
#include "server/api/guide_fields.h"
#include "server/api/responses/input_items.h"
#include "server/api/thinking.h"
#include "server/api/tool_choice.h"
#include "server/api/tools.h"

namespace kvasir::server::api {
namespace {

constexpr double kMaxInt32 = std::numeric_limits<std::int32_t>::max();
constexpr double kMostInteger = std::numeric_limits<std::int64_t>::max();
constexpr std::string_view kWantsLogprobs = "message.output_text.logprobs";

ApiStatus read_tool_list(const FieldInput& field, ResponsesRequest& request) {
  KVASIR_TRY(Tools tools, read_tools(field, kResponsesTools));
  request.tools_json = simdjson::minify(field.json);
  request.tool_names = std::move(tools.names);
  request.tool_schemas = std::move(tools.schemas);
  request.tool_origins = std::move(tools.origins);
  if (!request.tool_names.empty()) request.tools = std::move(tools.list);
  return {};
}

ApiStatus read_choice_of_tool(const FieldInput& field, ResponsesRequest& request) {
  return read_openai_tool_choice(field, request);
}

ApiStatus read_parallel_calls(const FieldInput& field, ResponsesRequest& request) {
  KVASIR_TRY(request.parallel_tool_calls, boolean_of(field));
  return {};
}

ApiStatus read_metadata(const FieldInput& field, ResponsesRequest& request) {
  if (const auto metadata = object_of(field); !metadata) {
    warn_ignored(field, metadata.error().message);
    return {};
  }
  request.metadata_json = simdjson::minify(field.json);
  return {};
}

ApiStatus read_text(const FieldInput& field, ResponsesRequest& request) {
  KVASIR_TRY(const JsonObject object, object_of(field));
  if (find_member(object, "verbosity")) {
    field.warn(".verbosity is left out: the model decides how much it says");
  }
  const auto format = find_member(object, "format");
  if (!format || asks_for_nothing(*format)) return {};
  KVASIR_CHECKED(read_response_format(field.at("format", *format), request));
  request.format_json = simdjson::minify(*format);
  return {};
}

ApiStatus read_include(const FieldInput& field, ResponsesRequest& request) {
  KVASIR_TRY(const JsonArray wanted, array_of(field));
  std::size_t index = 0;
  for (const JsonElement item : wanted) {
    KVASIR_TRY(const std::string name, string_of(field.at(index++, item)));
    if (name == kWantsLogprobs) {
      request.logprobs = true;
    } else {
      field.warn(fmt::format(": \"{}\" is left out", printable(name.substr(0, 64))));
    }
  }
  return {};
}

ApiStatus read_top_logprobs(const FieldInput& field, ResponsesRequest& request) {
  KVASIR_TRY(const std::int64_t count, integer_within(field, field.limits.top_logprobs));
  request.top_logprobs = static_cast<std::int32_t>(count);
  if (count > 0) request.logprobs = true;
  return {};
}

ApiStatus read_answer_bound(const FieldInput& field, ResponsesRequest& request) {
  KVASIR_TRY(request.max_output_tokens, answer_bound_of(field));
  request.is_unbounded = !request.max_output_tokens;
  if (request.is_unbounded) request.sampling.max_tokens.reset();
  return {};
}

ApiStatus read_reasoning_wish(const FieldInput& field, ResponsesRequest& request) {
  return read_reasoning(field, request);
}

constexpr auto kUnsupported = &read_unsupported<ResponsesRequest>;
constexpr auto kLeftOut = &read_ignored<ResponsesRequest>;
// The conversation is read when the instructions that go before it are known.
constexpr auto kReadLater = &read_later<ResponsesRequest>;

constexpr auto kFields = std::to_array<Field<ResponsesRequest>>({
    {"input", "string or array of items", {}, "messages, calls of functions and their results", kReadLater},
    {"instructions",
     "string",
     {},
     "a system message before it",
     read_string<&ResponsesRequest::instructions>},
    {"max_output_tokens", "integer", {-1, kMostInteger}, "longest answer", read_answer_bound},
    {"tools",
     "array",
     {},
     "functions, custom tools and namespaces of them, shown to the model by the template",
     read_tool_list},
    {"tool_choice",
     "string or object",
     {},
     "\"auto\" (default), \"none\", \"required\", a function by its name, or allowed_tools",
     read_choice_of_tool},
    {"parallel_tool_calls",
     "boolean",
     {},
     "false: at most one call in an answer, the first",
     read_parallel_calls},
    {"text", "object", {}, "format: as response_format, with the schema beside the type", read_text},
    {"include",
     "array of strings",
     {},
     "\"message.output_text.logprobs\"; others are left out",
     read_include},
    {"top_logprobs", "integer", {0, kMaxInt32}, "alternatives for each token", read_top_logprobs},
    {"metadata", "object", {}, "comes back in the answer", read_metadata},

    {"store",
     "boolean",
     {},
     "keep the response, for GET and previous_response_id; true by default",
     read_boolean<&ResponsesRequest::store>},
    {"previous_response_id",
     "string",
     {},
     "a response that was kept: its conversation goes before the input, without its instructions",
     read_string<&ResponsesRequest::previous_response_id>},
    {"background",
     "boolean",
     {},
     "answer at once with status \"queued\"; GET tells when it is done",
     read_boolean<&ResponsesRequest::background>},

    {"client_metadata", "object", {}, "accepted", read_unused<object_of>},
    {"max_tool_calls",
     "integer",
     {},
     "accepted; it is for tools that run in the server",
     read_unused<integer_of>},
    {"reasoning",
     "object",
     {},
     "effort is told to a template that reads it; \"none\": not at all",
     read_reasoning_wish},
    {"truncation", "string", {}, "left out: a conversation is never cut", read_ignored_unless<"disabled">},
    {"context_management", "array", {}, "left out: a conversation is never cut", kLeftOut},
    {"background_options", "object", {}, "left out: there are none", kLeftOut},
    {"access_programs", "object", {}, "left out: there are none", kLeftOut},
    {"image", "object", {}, "left out: there are no images", kLeftOut},

    {"conversation", "string or object", {}, "refused: there are none; previous_response_id goes on", kUnsupported},
    {"prompt", "object", {}, "refused: no prompts are stored", kUnsupported},
});

ApiStatus check(ResponsesRequest& request, Warnings& warnings) {
  KVASIR_CHECKED(check_generation_request(request, warnings));
  if (request.sampling.n != 1) return bad_request("n: a response is one answer", "n");
  if (request.sampling.prompt_logprobs) return not_supported("prompt_logprobs", "it in a response");
  if (request.background && request.store == false) {
    return bad_request("background: a response that nobody waits for must be stored", "store");
  }
  return {};
}

ApiResult<jinja::Value> read_conversation(JsonElement input, const Limits& limits, const std::string* before,
                                          ResponsesRequest& request, Warnings& warnings) {
  std::optional<JsonDocument> earlier;
  std::optional<FieldInput> earlier_items;
  if (before != nullptr) {
    KVASIR_TRY(earlier, JsonDocument::parse(*before, limits));
    const auto items = find_member(earlier->root(), "input");
    earlier_items.emplace(FieldInput{"previous_response_id", *items, limits});
  }
  return read_input({"input", input, limits, {}, &warnings}, earlier_items ? &*earlier_items : nullptr,
                    request.instructions, warnings);
}

}  // namespace

std::span<const Field<ResponsesRequest>> responses_fields() { return kFields; }

ApiResult<ResponsesRequest> parse_responses_request(std::string_view body, const Limits& limits,
                                                    Warnings& warnings) {
  return parse_continued_request(body, limits, nullptr, warnings);
}

ApiResult<ResponsesRequest> parse_continued_request(std::string_view body, const Limits& limits,
                                                    const std::string* before, Warnings& warnings) {
  KVASIR_TRY(const JsonDocument document, JsonDocument::parse(body, limits));
  ResponsesRequest request;
  KVASIR_CHECKED(
      read_fields(document.root(), generation_fields(), responses_fields(), limits, request, warnings));
  auto input = find_member(document.root(), "input");
  KVASIR_TRY(const JsonDocument nothing, JsonDocument::parse(R"({"input":[]})", limits));
  if (!input && !request.previous_response_id.empty()) input = find_member(nothing.root(), "input");
  if (!input) return bad_request("input is missing", "input", "missing_parameter");
  if (before != nullptr || request.previous_response_id.empty()) {
    KVASIR_TRY(request.messages, read_conversation(*input, limits, before, request, warnings));
  }
  KVASIR_CHECKED(check(request, warnings));
  KVASIR_CHECKED(keep_allowed_tools(request, warnings));
  if (request.max_output_tokens) request.sampling.max_tokens = request.max_output_tokens;
  if (request.logprobs) request.sampling.logprobs = request.top_logprobs;
  return request;
}

}  // namespace kvasir::server::api
