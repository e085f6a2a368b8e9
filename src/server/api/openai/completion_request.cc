#include "server/api/openai/completion_request.h"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <utility>
#include <variant>

#include "server/api/tool_choice.h"

namespace kvasir::server::api {
namespace {

constexpr double kMaxInt32 = std::numeric_limits<std::int32_t>::max();
constexpr std::int32_t kDefaultMaxTokens = 16;  // as OpenAI's

ApiStatus read_prompt(const FieldInput& field, CompletionRequest& request) {
  KVASIR_TRY(request.prompts, prompts_of(field, field.limits.prompts));
  return {};
}

ApiStatus read_logprobs(const FieldInput& field, CompletionRequest& request) {
  if (field.json.is_bool()) {  // as chats have it; vLLM reads true as 1
    if (field.json.get_bool().value()) request.sampling.logprobs = 1;
    return {};
  }
  KVASIR_TRY(const std::int64_t count, integer_within(field, field.limits.top_logprobs));
  request.sampling.logprobs = static_cast<std::int32_t>(count);
  return {};
}

ApiStatus read_suffix(const FieldInput& field, CompletionRequest& request) {
  if (!field.json.is_string() && !field.json.is_object() && asks_for_nothing(field.json)) return {};
  KVASIR_TRY(request.suffix, string_of(field));
  return {};
}

ApiStatus read_timings(const FieldInput& field, CompletionRequest& request) {
  if (field.json.is_bool()) {
    request.timings_per_token = field.json.get_bool().value();
  } else {
    warn_ignored(field, "it is no boolean");
  }
  return {};
}

constexpr auto kLeftOut = &read_ignored<CompletionRequest>;

constexpr auto kFields = std::to_array<Field<CompletionRequest>>({
    {"prompt", "string, token ids, or an array of either", {}, "what the answer continues", read_prompt},
    {"echo",
     "boolean",
     {},
     "begin the answer with the prompt; with logprobs, also its own",
     read_boolean<&CompletionRequest::echo>},
    {"logprobs", "integer or boolean", {0, kMaxInt32}, "alternatives for each token; true: 1", read_logprobs},
    {"add_special_tokens",
     "boolean",
     {},
     "BOS where the model wants it",
     read_boolean<&CompletionRequest::add_special_tokens>},
    {"parse_special",
     "boolean",
     {},
     "false: control tokens written in the prompt are plain text",
     read_boolean<&CompletionRequest::parse_special>},
    {"tools", "array", {}, "left out: tools are of chats", kLeftOut},
    {"tool_choice",
     "string or object",
     {},
     "no call is forced: tools are of chats",
     read_choice_without_tools},
    {"functions", "array", {}, "left out: tools are of chats", kLeftOut},
    {"suffix",
     "string",
     {},
     "the answer fills the place between prompt and suffix; only of models with tokens for that",
     read_suffix},
    {"timings_per_token",
     "boolean",
     {},
     "how long the prompt and the answer took, also in each piece of a stream",
     read_timings},
});

ApiStatus check(CompletionRequest& request, Warnings& warnings) {
  KVASIR_CHECKED(check_generation_request(request, warnings));
  if (request.prompts.empty()) return bad_request("prompt is missing", "prompt", "missing_parameter");
  if (request.guide && request.echo) return bad_request("echo: the form of an answer leaves no room for the prompt", "echo");
  if (request.suffix.empty()) return {};
  if (request.echo) return bad_request("echo: an answer before a suffix does not begin with the prompt", "echo");
  for (const PlainPrompt& prompt : request.prompts) {
    if (!std::holds_alternative<std::string>(prompt.content)) {
      return bad_request("suffix: the prompt before it must be a string", "suffix");
    }
  }
  return {};
}

}  // namespace

std::span<const Field<CompletionRequest>> completion_fields() { return kFields; }

ApiResult<CompletionRequest> parse_completion_request(std::string_view body, const Limits& limits,
                                                      Warnings& warnings) {
  KVASIR_TRY(const JsonDocument document, JsonDocument::parse(body, limits));
  CompletionRequest request;
  KVASIR_CHECKED(
      read_fields(document.root(), generation_fields(), completion_fields(), limits, request, warnings));
  JsonElement prompt;
  const bool is_null = !document.root().at_key("prompt").get(prompt) && prompt.is_null();
  if (is_null) request.prompts = {PlainPrompt{"prompt", std::string()}};  // as OpenAI: a text begins
  KVASIR_CHECKED(check(request, warnings));
  if (!request.sampling.max_tokens && !request.is_unbounded) request.sampling.max_tokens = kDefaultMaxTokens;
  if (request.echo && request.sampling.logprobs) request.sampling.prompt_logprobs = request.sampling.logprobs;
  return request;
}

}  // namespace kvasir::server::api
