// POST /v1/completions: what the body says.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/generation_request.h"
#include "server/api/openai/plain_prompt.h"

namespace kvasir::server::api {

struct CompletionRequest : GenerationRequest {
  std::vector<PlainPrompt> prompts;  // not empty once parsed
  std::string suffix;                // what follows the place that the answer fills in; empty: it goes on
  bool timings_per_token = false;
  bool echo = false;
  bool add_special_tokens = true;  // BOS where the model wants it
  bool parse_special = true;       // control tokens in a string prompt mean themselves
};

std::span<const Field<CompletionRequest>> completion_fields();

// Errors (400).
ApiResult<CompletionRequest> parse_completion_request(std::string_view body, const Limits& limits,
                                                      Warnings& warnings);

}  // namespace kvasir::server::api
