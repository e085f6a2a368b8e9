// POST /v1/messages: what the body says.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "server/api/chat_request.h"

namespace kvasir::server::api {

// A chat, once it is read.
struct MessagesRequest : ChatRequest {
  std::string system;
};

std::span<const Field<MessagesRequest>> messages_fields();

// Errors (400).
ApiResult<MessagesRequest> parse_messages_request(std::string_view body, const Limits& limits,
                                                  Warnings& warnings);
// The same for those who only want its tokens counted: they need not say how long the answer may be.
ApiResult<MessagesRequest> parse_count_tokens_request(std::string_view body, const Limits& limits,
                                                      Warnings& warnings);

}  // namespace kvasir::server::api
