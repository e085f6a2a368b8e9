// POST /tokenize and /detokenize: what the bodies say.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/openai/chat_fields.h"

namespace kvasir::server::api {

// A text, or a conversation with all that its template takes.
struct TokenizeRequest : ChatRequest {
  std::optional<std::string> prompt;
  bool add_special_tokens = true;  // BOS where the model wants it; a template brings its own
  bool says_special = false;       // the request says that
  bool parse_special = true;       // control tokens in the prompt mean themselves
  bool return_token_strs = false;
  bool with_pieces = false;        // llama-server's form: each token with its text
};

struct DetokenizeRequest {
  std::string model;
  std::vector<TokenId> tokens;
  bool skip_special_tokens = false;
};

std::span<const Field<TokenizeRequest>> tokenize_fields();
std::span<const Field<DetokenizeRequest>> detokenize_fields();

// Errors (400).
ApiResult<TokenizeRequest> parse_tokenize_request(std::string_view body, const Limits& limits,
                                                  Warnings& warnings);
ApiResult<DetokenizeRequest> parse_detokenize_request(std::string_view body, const Limits& limits,
                                                      Warnings& warnings);

}  // namespace kvasir::server::api
