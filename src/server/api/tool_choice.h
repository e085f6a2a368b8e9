// Whether an answer may call tools, and which.
#pragma once

#include "server/api/chat_request.h"

namespace kvasir::server::api {

// OpenAI's tool_choice: "none", "auto" or "required", each in an object too, a function or custom tool by its name, or
// "allowed_tools", in the form of chats or of Responses. Errors (400): a tool that the server would have to run,
// something else.
ApiStatus read_openai_tool_choice(const FieldInput& field, ChatRequest& request);
// Anthropic's: "none", "auto", "any", or "tool" with a name.
ApiStatus read_anthropic_tool_choice(const FieldInput& field, ChatRequest& request);

// Of an answer that calls no tools. Errors (400): a call that is demanded.
ApiStatus refuse_forced_choice(const FieldInput& field);
template <class Target>
ApiStatus read_choice_without_tools(const FieldInput& field, Target&) {
  return refuse_forced_choice(field);
}

// Keeps of the request's tools those that its choice allows; both are read by now. Errors (400): a call is demanded, and
// there is no such tool.
ApiStatus keep_allowed_tools(ChatRequest& request, Warnings& warnings);

}  // namespace kvasir::server::api
