// What a request wishes about thinking. Templates decide: many read `enable_thinking`.
#pragma once

#include <string_view>

#include "server/api/chat_request.h"

namespace kvasir::server::api {

// How hard to think, by OpenAI's and Anthropic's words; "none" is not at all. `field` is warned about.
void read_effort(const FieldInput& field, std::string_view effort, ChatRequest& request);
// The rows of OpenAI's `reasoning_effort` and `reasoning`, and of Anthropic's `thinking`.
ApiStatus read_reasoning_effort(const FieldInput& field, ChatRequest& request);
ApiStatus read_reasoning(const FieldInput& field, ChatRequest& request);
ApiStatus read_thinking(const FieldInput& field, ChatRequest& request);
// The row of vLLM's and Qwen's `enable_thinking`.
ApiStatus read_enable_thinking(const FieldInput& field, ChatRequest& request);

}  // namespace kvasir::server::api
