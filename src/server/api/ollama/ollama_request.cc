#include "server/api/ollama/ollama_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <utility>

#include "server/api/conversation_input.h"
#include "server/api/guide_fields.h"
#include "server/api/ollama/ollama_messages.h"
#include "server/api/ollama/options.h"
#include "server/api/template_dict.h"
#include "server/api/thinking.h"
#include "server/api/tools.h"

namespace kvasir::server::api {
namespace {

using jinja::Value;

constexpr double kMaxInt32 = std::numeric_limits<std::int32_t>::max();
constexpr auto kLeftOut = &read_ignored<OllamaRequest>;
constexpr std::string_view kAnyObject = R"({"type":"object"})";

// A row that all requests have.
template <auto Read>
ApiStatus read_as_base(const FieldInput& field, OllamaRequest& request) {
  return Read(field, request);
}

ApiStatus read_conversation(const FieldInput& field, OllamaRequest& request) {
  KVASIR_TRY(const JsonArray messages, array_of(field));
  request.has_messages = messages.size() > 0;
  if (!request.has_messages) return {};
  KVASIR_TRY(request.messages, read_ollama_messages(field, *field.warnings));
  request.continue_final_message = ends_with_assistant(request.messages);
  return {};
}

ApiStatus read_functions(const FieldInput& field, OllamaRequest& request) {
  KVASIR_TRY(Tools tools, read_tools(field, kChatTools));
  request.tool_names = std::move(tools.names);
  request.tool_schemas = std::move(tools.schemas);
  request.tool_origins = std::move(tools.origins);
  if (!request.tool_names.empty()) request.tools = std::move(tools.list);
  return {};
}

// "json", a schema, or nothing.
ApiStatus read_format(const FieldInput& field, OllamaRequest& request) {
  if (!field.json.is_string()) {
    KVASIR_CHECKED(read_guided_json(field, request));
    if (request.guide) request.guide->is_strict = true;  // as Ollama's objects, which have no members beside those named
    return {};
  }
  const std::string_view word = field.json.get_string().value();
  if (word.empty()) return {};
  if (word != "json") return bad_request(field.name + " must be \"json\" or a schema", field.name);
  request.guide = Guide{.text = std::string(kAnyObject), .field = field.name};
  return {};
}

ApiStatus read_kept_alive(const FieldInput& field, OllamaRequest&) { return check_keep_alive(field); }

ApiStatus read_top_logprobs(const FieldInput& field, OllamaRequest& request) {
  KVASIR_TRY(const std::int64_t count, integer_within(field, field.limits.top_logprobs));
  request.top_logprobs = static_cast<std::int32_t>(count);
  return {};
}

ApiStatus read_context(const FieldInput& field, OllamaRequest& request) {
  KVASIR_TRY(request.tokens, token_ids_of(field));
  return {};
}

ApiStatus refuse_images(const FieldInput& field, OllamaRequest&) { return check_no_images(field); }

ApiStatus refuse_template(const FieldInput& field, OllamaRequest&) {
  if (asks_for_nothing(field.json)) return {};
  return bad_request(field.name + ": a request brings no template here: send the prompt with raw: true", field.name,
                     "unsupported_parameter");
}

constexpr auto kModelRow = &read_as_base<read_string<&GenerationRequest::model>>;
constexpr auto kStreamRow = &read_as_base<read_boolean<&GenerationRequest::stream>>;
constexpr auto kThinkRow = &read_as_base<read_think>;
constexpr auto kLogprobsRow = &read_as_base<read_boolean<&ChatRequest::logprobs>>;

constexpr auto kCommonFields = std::to_array<Field<OllamaRequest>>({
    {"model", "string", {}, "which model answers; absent: the one there is", kModelRow},
    {"name", "string", {}, "an older name of model", kModelRow},
    {"stream", "boolean", {}, "answer in pieces, a line of JSON each; true by default", kStreamRow},
    {"format", "string or object", {}, "\"json\": an object; a schema: what satisfies it", read_format},
    {"options", "object", {}, "how tokens are chosen, and how many", read_options},
    {"keep_alive", "string or number", {}, "accepted; the model stays loaded", read_kept_alive},
    {"think", "boolean or string", {}, "whether to think, or how hard: told to the template", kThinkRow},
    {"logprobs", "boolean", {}, "the log probability of each token", kLogprobsRow},
    {"top_logprobs", "integer", {0, kMaxInt32}, "alternatives for each token", read_top_logprobs},
    {"truncate", "boolean", {}, "left out: a conversation is never cut", kLeftOut},
    {"shift", "boolean", {}, "left out: a context is never shifted", kLeftOut},
    {"_debug_render_only", "boolean", {}, "refused: /apply-template shows a prompt", read_unsupported<OllamaRequest>},
});

// The rows of both.
template <std::size_t A, std::size_t B>
constexpr std::array<Field<OllamaRequest>, A + B> joined(const std::array<Field<OllamaRequest>, A>& own,
                                                         const std::array<Field<OllamaRequest>, B>& common) {
  std::array<Field<OllamaRequest>, A + B> all{};
  std::ranges::copy(common, std::ranges::copy(own, all.begin()).out);
  return all;
}

constexpr auto kChatFields = joined(std::to_array<Field<OllamaRequest>>({
    {"messages", "array", {}, "the conversation; empty or absent: the model is loaded", read_conversation},
    {"tools", "array", {}, "functions, shown to the model by the template", read_functions},
}), kCommonFields);

constexpr auto kGenerateFields = joined(std::to_array<Field<OllamaRequest>>({
    {"prompt", "string", {}, "what a user says; empty or absent: the model is loaded", read_string<&OllamaRequest::prompt>},
    {"system", "string", {}, "what goes before it", read_string<&OllamaRequest::system>},
    {"suffix",
     "string",
     {},
     "the answer fills the place between prompt and suffix; only of models with tokens for that",
     read_string<&OllamaRequest::suffix>},
    {"raw", "boolean", {}, "the prompt is what the model reads, without its template", read_boolean<&OllamaRequest::is_raw>},
    {"context", "array of integers", {}, "the tokens of the conversation before, as an answer gave them", read_context},
    {"template", "string", {}, "refused: a prompt of another form is sent with raw", refuse_template},
    {"images", "array", {}, "refused: no model here sees", refuse_images},
    {"width", "integer", {}, "left out: answers are text", kLeftOut},
    {"height", "integer", {}, "left out: answers are text", kLeftOut},
    {"steps", "integer", {}, "left out: answers are text", kLeftOut},
}), kCommonFields);

ApiStatus finish(OllamaRequest& request, Warnings& warnings) {
  KVASIR_CHECKED(check_generation_request(request, warnings));
  if (request.logprobs) request.sampling.logprobs = request.top_logprobs;
  return {};
}

ApiResult<OllamaRequest> parse(std::string_view body, const Limits& limits, Warnings& warnings,
                               std::span<const Field<OllamaRequest>> fields) {
  KVASIR_TRY(const JsonDocument document, JsonDocument::parse(body, limits));
  OllamaRequest request;
  KVASIR_CHECKED(read_fields(document.root(), std::span<const Field<OllamaRequest>>(), fields, limits, request, warnings));
  KVASIR_CHECKED(finish(request, warnings));
  return request;
}

Value message_of(std::string role, std::string content) {
  TemplateEntries entries;
  add_member(entries, "role", std::move(role));
  add_member(entries, "content", std::move(content));
  return Value::dict(std::move(entries));
}

}  // namespace

ApiStatus check_keep_alive(const FieldInput& field) {
  const bool is_text = field.json.is_string();
  if (!is_text && !field.json.is_number()) return wrong_type(field, "a number of seconds or a string such as \"5m\"");
  const std::string_view text = is_text ? field.json.get_string().value() : std::string_view();
  const bool is_zero = is_text ? !text.empty() && text.find_first_not_of("0hmsun.") == text.npos
                               : field.json.get_double().value() == 0;
  if (is_zero) field.warn(" is left out: the model stays loaded");
  return {};
}

std::span<const Field<OllamaRequest>> ollama_chat_fields() { return kChatFields; }
std::span<const Field<OllamaRequest>> ollama_generate_fields() { return kGenerateFields; }

ApiResult<OllamaRequest> parse_ollama_chat(std::string_view body, const Limits& limits, Warnings& warnings) {
  return parse(body, limits, warnings, kChatFields);
}

ApiResult<OllamaRequest> parse_ollama_generate(std::string_view body, const Limits& limits, Warnings& warnings) {
  KVASIR_TRY(OllamaRequest request, parse(body, limits, warnings, kGenerateFields));
  if (request.fills_in() && request.is_raw) return bad_request("suffix: a raw prompt has it in itself", "suffix");
  std::vector<Value> messages;
  if (!request.system.empty()) messages.push_back(message_of("system", request.system));
  messages.push_back(message_of("user", request.prompt));
  request.messages = Value::list(std::move(messages));
  return request;
}

}  // namespace kvasir::server::api
