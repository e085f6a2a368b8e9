// POST /v1/responses: what the body says.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "server/api/chat_request.h"

namespace kvasir::server::api {

// A chat, once it is read, and what its answer repeats.
struct ResponsesRequest : ChatRequest {
  std::string instructions;
  std::optional<std::int32_t> max_output_tokens;
  std::string tools_json = "[]";  // as they came
  std::string metadata_json = "{}";
};

std::span<const Field<ResponsesRequest>> responses_fields();

// Errors (400).
ApiResult<ResponsesRequest> parse_responses_request(std::string_view body, const Limits& limits,
                                                    Warnings& warnings);

}  // namespace kvasir::server::api
