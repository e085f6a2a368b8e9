// The conversation of a chat request, in the form that chat templates read.
#pragma once

#include <string>

#include "jinja/value.h"
#include "server/api/conversation_input.h"
#include "server/api/json_input.h"

namespace kvasir::server::api {

// Whether the last message is an assistant's that the answer goes on with: "prefix" (Mistral, DeepSeek) or "partial"
// (Moonshot, Qwen) says so.
bool continues_last_message(const FieldInput& messages);

// A list of message dicts, made as clients send them: `developer` becomes `system`, `function` `tool`; a
// content that is missing or null is empty; `reasoning` is `reasoning_content`; an assistant's refusal is its
// content when it has no other; the arguments of a call become an object where they are one. What means nothing
// here is warned of. Errors (400) name the part at fault: a part that is no text, a call without a name, a limit.
ApiResult<jinja::Value> read_messages(const FieldInput& field, Warnings& warnings);

// The arguments of a call as templates expect them: the object that a string holds; a string that holds none
// stays, and one that is blank is none at all. Errors (400): neither object nor string.
ApiResult<jinja::Value> read_call_arguments(const FieldInput& arguments);

// The text that a custom tool was called with, as arguments.
jinja::Value custom_call_arguments(std::string input);

}  // namespace kvasir::server::api
