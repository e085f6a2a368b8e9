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
  std::string format_json = R"({"type":"text"})";  // of the answer's text
  std::optional<bool> store;  // what the answer can be asked for later
  bool background = false;
  std::string previous_response_id;  // empty: none
};

std::span<const Field<ResponsesRequest>> responses_fields();

// `before`: the items of the conversation that the request goes on with, as a body {"input":[...]}; null: they
// are not known yet, and neither are the messages of a request with a previous_response_id. Errors (400).
ApiResult<ResponsesRequest> parse_continued_request(std::string_view body, const Limits& limits,
                                                    const std::string* before, Warnings& warnings);
ApiResult<ResponsesRequest> parse_responses_request(std::string_view body, const Limits& limits,
                                                    Warnings& warnings);

}  // namespace kvasir::server::api
