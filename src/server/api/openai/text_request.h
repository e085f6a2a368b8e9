// POST /v1/generate: what the body says.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "server/api/chat_request.h"
#include "server/api/openai/plain_prompt.h"

namespace kvasir::server::api {

// One prompt, or a conversation; one choice.
struct TextRequest : ChatRequest {
  std::optional<PlainPrompt> prompt;  // none where there are messages
  bool add_special_tokens = true;     // of a prompt that is a text: BOS where the model wants it
  bool parse_special = true;          // likewise: control tokens in it mean themselves
};

std::span<const Field<TextRequest>> text_fields();

// Errors (400).
ApiResult<TextRequest> parse_text_request(std::string_view body, const Limits& limits, Warnings& warnings);

}  // namespace kvasir::server::api
