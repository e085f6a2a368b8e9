// How the answers to a chat are read.
#pragma once

#include <span>

#include "kvasir/request.h"
#include "server/api/api_context.h"
#include "server/api/chat_request.h"
#include "server/api/tool_calls/tool_call_reader.h"

namespace kvasir::server::api {

// The model's template, or the one that it has for requests with tools. Requires: the model has one.
const text::ChatTemplate& template_of(const ApiContext& context, const ChatRequest& request);
// Whether the template shows tools in a form that is known.
bool shows_tools(const ApiContext& context, const ChatRequest& request);
// What reads the answers to `wanted`, the engine's request for the chat. The control tokens among the
// syntax's marks are shown to the reader from now on. Requires: the model has a tokenizer and a template.
ToolCallReading tool_call_reading(const ApiContext& context, const ChatRequest& request, Request& wanted);

}  // namespace kvasir::server::api
