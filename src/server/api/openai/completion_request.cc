#include "server/api/openai/completion_request.h"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <utility>

namespace kvasir::server::api {
namespace {

constexpr double kMaxInt32 = std::numeric_limits<std::int32_t>::max();
constexpr std::int32_t kDefaultMaxTokens = 16;  // as OpenAI's

ApiStatus read_prompt(const FieldInput& field, CompletionRequest& request) {
  KVASIR_TRY(request.prompts, prompts_of(field, field.limits.prompts));
  return {};
}

ApiStatus read_logprobs(const FieldInput& field, CompletionRequest& request) {
  KVASIR_TRY(const std::int64_t count, integer_within(field, field.limits.top_logprobs));
  request.sampling.logprobs = static_cast<std::int32_t>(count);
  return {};
}

// Choosing the best of several answers on the server: only the case that asks for nothing.
ApiStatus read_best_of(const FieldInput& field, CompletionRequest&) {
  KVASIR_TRY(const std::int64_t best_of, integer_of(field));
  if (best_of == 1) return {};
  return not_supported(field.name, "anything but 1");
}

constexpr auto kFields = std::to_array<Field<CompletionRequest>>({
    {"prompt", "string, token ids, or an array of either", {}, "what the answer continues", read_prompt},
    {"echo",
     "boolean",
     {},
     "begin the answer with the prompt; with logprobs, also its own",
     read_boolean<&CompletionRequest::echo>},
    {"logprobs", "integer", {0, kMaxInt32}, "alternatives for each token", read_logprobs},
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
    {"best_of", "integer", {1, kMaxInt32}, "only 1", read_best_of},
    {"tools", "array", {}, "only of a chat", read_unsupported<CompletionRequest>},
    {"tool_choice", "string or object", {}, "only of a chat", read_unsupported<CompletionRequest>},
    {"functions", "array", {}, "only of a chat", read_unsupported<CompletionRequest>},
    {"suffix", "string", {}, "not yet", read_unsupported<CompletionRequest>},
});

ApiStatus check(const CompletionRequest& request) {
  KVASIR_CHECKED(check_generation_request(request));
  if (request.prompts.empty()) return bad_request("prompt is missing", "prompt", "missing_parameter");
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
  KVASIR_CHECKED(check(request));
  if (!request.sampling.max_tokens) request.sampling.max_tokens = kDefaultMaxTokens;
  if (request.echo && request.sampling.logprobs) request.sampling.prompt_logprobs = request.sampling.logprobs;
  return request;
}

}  // namespace kvasir::server::api
