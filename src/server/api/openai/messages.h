// The conversation of a chat request, in the form that chat templates read.
#pragma once

#include "jinja/value.h"
#include "server/api/json_input.h"

namespace kvasir::server::api {

// A list of message dicts. `developer` becomes `system`; the text parts of a content join with line breaks;
// a null content becomes "" (only beside tool_calls); the arguments of a tool call become an object where
// they are one. Errors (400) name the part at fault: an unknown role or part type, a missing content, a
// limit.
ApiResult<jinja::Value> read_messages(const FieldInput& field);

// The arguments of a call as templates expect them: the object that a string holds; a string that holds none
// stays. Errors (400): neither object nor string.
ApiResult<jinja::Value> read_call_arguments(const FieldInput& arguments);

}  // namespace kvasir::server::api
