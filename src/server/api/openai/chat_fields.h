// POST /v1/chat/completions: what the body says.
#pragma once

#include <span>
#include <string_view>

#include "server/api/chat_request.h"

namespace kvasir::server::api {

std::span<const Field<ChatRequest>> chat_fields();

// Errors (400).
ApiResult<ChatRequest> parse_chat_request(std::string_view body, const Limits& limits, Warnings& warnings);

}  // namespace kvasir::server::api
