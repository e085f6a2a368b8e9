#include "server/api/openai/text_request.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "server/api/openai/messages.h"
#include "server/api/tool_choice.h"

namespace kvasir::server::api {
namespace {

constexpr std::int32_t kDefaultMaxTokens = 16;  // of a prompt, as in /v1/completions

ApiStatus read_prompt(const FieldInput& field, TextRequest& request) {
  KVASIR_TRY(std::vector<PlainPrompt> prompts, prompts_of(field, field.limits.prompts));
  if (prompts.size() != 1) {
    return bad_request(fmt::format("{}: {} prompts, this endpoint takes one", field.name, prompts.size()),
                       field.name);
  }
  request.prompt = std::move(prompts.front());
  return {};
}

ApiStatus read_conversation(const FieldInput& field, TextRequest& request) {
  KVASIR_TRY(request.messages, read_messages(field, *field.warnings));
  return {};
}

constexpr auto kUnsupported = &read_unsupported<TextRequest>;
constexpr auto kLeftOut = &read_ignored<TextRequest>;

constexpr auto kFields = std::to_array<Field<TextRequest>>({
    {"prompt", "string or token ids", {}, "what the answer continues; or messages", read_prompt},
    {"messages", "array", {}, "a conversation, as in `/v1/chat/completions`", read_conversation},
    {"add_special_tokens",
     "boolean",
     {},
     "BOS where the model wants it; not of messages",
     read_boolean<&TextRequest::add_special_tokens>},
    {"parse_special",
     "boolean",
     {},
     "false: control tokens written in the prompt are plain text, as they always are in messages",
     read_boolean<&TextRequest::parse_special>},
    {"logprobs", "integer or boolean", {}, "refused: only in `/v1/completions` and chats", kUnsupported},
    {"prompt_logprobs", "integer", {}, "refused: only in `/v1/completions` and chats", kUnsupported},
    {"echo", "boolean", {}, "refused: only in `/v1/completions`", kUnsupported},
    {"suffix", "string", {}, "refused: nothing is filled in yet", kUnsupported},
    {"tools", "array", {}, "left out: tools are of chats", kLeftOut},
    {"tool_choice",
     "string or object",
     {},
     "no call is forced: tools are of chats",
     read_choice_without_tools},
    {"functions", "array", {}, "left out: tools are of chats", kLeftOut},
});

ApiStatus check(TextRequest& request, Warnings& warnings) {
  KVASIR_CHECKED(check_generation_request(request, warnings));
  const bool has_messages = !request.messages.is_undefined();
  if (has_messages == request.prompt.has_value()) {
    return bad_request(has_messages ? "prompt and messages are given, one is wanted" : "prompt is missing",
                       "prompt", has_messages ? "" : "missing_parameter");
  }
  if (request.sampling.n != 1) {
    return bad_request(fmt::format("n must be 1, got {}", request.sampling.n), "n");
  }
  return {};
}

}  // namespace

std::span<const Field<TextRequest>> text_fields() { return kFields; }

ApiResult<TextRequest> parse_text_request(std::string_view body, const Limits& limits, Warnings& warnings) {
  KVASIR_TRY(const JsonDocument document, JsonDocument::parse(body, limits));
  TextRequest request;
  KVASIR_CHECKED(read_fields(document.root(), generation_fields(), text_fields(), limits, request, warnings));
  KVASIR_CHECKED(check(request, warnings));
  if (request.prompt && !request.sampling.max_tokens && !request.is_unbounded)
    request.sampling.max_tokens = kDefaultMaxTokens;
  return request;
}

}  // namespace kvasir::server::api
