#include "server/api/openai/token_requests.h"

#include <array>
#include <utility>

#include "server/api/conversation_input.h"

namespace kvasir::server::api {
namespace {

ApiStatus read_model(const FieldInput& field, TokenizeRequest& request) {
  KVASIR_TRY(request.model, string_of(field));
  return {};
}

// llama-server adds no BOS to what it calls so.
ApiStatus read_content_text(const FieldInput& field, TokenizeRequest& request) {
  KVASIR_TRY(request.prompt, string_of(field));
  if (!request.says_special) request.add_special_tokens = false;
  return {};
}

ApiStatus read_add_special(const FieldInput& field, TokenizeRequest& request) {
  KVASIR_TRY(request.add_special_tokens, boolean_of(field));
  request.says_special = true;
  return {};
}

ApiStatus read_tokens(const FieldInput& field, DetokenizeRequest& request) {
  KVASIR_TRY(request.tokens, token_ids_of(field));
  return {};
}

constexpr auto kTokenizeFields = std::to_array<Field<TokenizeRequest>>({
    {"model", "string", {}, "whose tokens; absent: those of the one there is", read_model},
    {"prompt", "string", {}, "the text; or messages", read_string<&TokenizeRequest::prompt>},
    {"content", "string", {}, "another name for prompt; no BOS then, unless add_special is true", read_content_text},
    {"add_special_tokens", "boolean", {}, "BOS where the model wants it; not of messages", read_add_special},
    {"add_special", "boolean", {}, "another name for add_special_tokens", read_add_special},
    {"parse_special",
     "boolean",
     {},
     "false: control tokens written in the prompt are plain text, as in /v1/completions",
     read_boolean<&TokenizeRequest::parse_special>},
    {"return_token_strs",
     "boolean",
     {},
     "also what each token says",
     read_boolean<&TokenizeRequest::return_token_strs>},
    {"with_pieces",
     "boolean",
     {},
     "each token as an object with id and piece, which is bytes where it is a part of a character",
     read_boolean<&TokenizeRequest::with_pieces>},
});

constexpr auto kDetokenizeFields = std::to_array<Field<DetokenizeRequest>>({
    {"model",
     "string",
     {},
     "whose tokens; absent: those of the one there is",
     read_string<&DetokenizeRequest::model>},
    {"tokens", "array of integers", {}, "token ids", read_tokens},
    {"skip_special_tokens",
     "boolean",
     {},
     "leave control tokens out",
     read_boolean<&DetokenizeRequest::skip_special_tokens>},
});

}  // namespace

std::span<const Field<TokenizeRequest>> tokenize_fields() { return kTokenizeFields; }
std::span<const Field<DetokenizeRequest>> detokenize_fields() { return kDetokenizeFields; }

ApiResult<TokenizeRequest> parse_tokenize_request(std::string_view body, const Limits& limits,
                                                  Warnings& warnings) {
  KVASIR_TRY(const JsonDocument document, JsonDocument::parse(body, limits));
  TokenizeRequest request;
  KVASIR_CHECKED(read_fields(document.root(), chat_fields(), tokenize_fields(), limits, request, warnings));
  const bool has_messages = !request.messages.is_undefined();
  if (has_messages == request.prompt.has_value()) {
    return bad_request(has_messages ? "prompt and messages are given, one is wanted" : "prompt is missing",
                       "prompt", has_messages ? "" : "missing_parameter");
  }
  return request;
}

ApiResult<DetokenizeRequest> parse_detokenize_request(std::string_view body, const Limits& limits,
                                                      Warnings& warnings) {
  KVASIR_TRY(const JsonDocument document, JsonDocument::parse(body, limits));
  DetokenizeRequest request;
  KVASIR_CHECKED(read_fields(document.root(), std::span<const Field<DetokenizeRequest>>(),
                             detokenize_fields(), limits, request, warnings));
  if (!find_member(document.root(), "tokens")) {
    return bad_request("tokens is missing", "tokens", "missing_parameter");
  }
  return request;
}

}  // namespace kvasir::server::api
