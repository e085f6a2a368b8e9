// The input of a Responses request, in the form that chat templates read.
#pragma once

#include <string>

#include "server/api/json_input.h"

namespace kvasir::server::api {

// A list of message dicts, `instructions` first unless they are empty. A string is what the user says. Of
// items, calls of functions go with the assistant's text before them, their results become messages of their
// own, and reasoning is left out. Errors (400) name the part at fault: an unknown role, another type of item
// or content, a limit.
ApiResult<jinja::Value> read_input(const FieldInput& field, const std::string& instructions);

}  // namespace kvasir::server::api
