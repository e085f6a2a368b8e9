// Whether an answer may call tools, and which.
#pragma once

#include "server/api/chat_request.h"

namespace kvasir::server::api {

// OpenAI's tool_choice: "none", "auto", either in an object, or "allowed_tools", in the form of chats or of
// Responses. Errors (400): a call that is demanded, something else.
ApiStatus read_openai_tool_choice(const FieldInput& field, ChatRequest& request);

// Of an answer that calls no tools. Errors (400): a call that is demanded.
ApiStatus refuse_forced_choice(const FieldInput& field);
template <class Target>
ApiStatus read_choice_without_tools(const FieldInput& field, Target&) {
  return refuse_forced_choice(field);
}

// Keeps of the request's tools those that its choice allows; both are read by now.
void keep_allowed_tools(ChatRequest& request, Warnings& warnings);

}  // namespace kvasir::server::api
