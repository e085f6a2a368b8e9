// The guide of answers that call tools.
#pragma once

#include "kvasir/request.h"
#include "server/api/api_context.h"
#include "server/api/chat_request.h"
#include "server/api/tool_calls/known_tools.h"
#include "server/api/tool_calls/tool_call_reader.h"
#include "server/api/warnings.h"
#include "server/api_error.h"

namespace kvasir::server::api {

// Guides the answers to `wanted`: calls are those of its tools, with arguments that satisfy their schemas. Where calls need
// no mark, only for a request that demands a call, has a strict tool, or says what form a text has. A schema that cannot be kept leaves its tool any object
// and gives a warning. Errors (400): a strict tool has such a schema, or none of its calls can be written, and a call is
// demanded; a form of the text beside a demanded call, or where calls need no mark.
ApiStatus guide_tool_calls(KnownTools& known, const ChatRequest& request, const ToolCallReading& reading,
                           Request& wanted, Warnings& warnings);

// Reads the answers to `wanted`, the engine's request for the chat, and guides them. Errors (400): as above. Requires: the
// model has a tokenizer and a template.
ApiResult<ToolCallReading> guided_tool_calls(const ApiContext& context, const ChatRequest& request, Request& wanted,
                                             http::ResponseWriter& writer);

}  // namespace kvasir::server::api
