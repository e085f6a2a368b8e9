// The input of a Responses request, in the form that chat templates read.
#pragma once

#include <string>

#include "server/api/field.h"
#include "server/api/json_input.h"

namespace kvasir::server::api {

// A list of message dicts, `instructions` first unless they are empty. A string is what the user says. Among
// items, calls of tools go with the assistant's text before them, their results become messages of their own,
// and what the model thought goes with what it said then. Items about what ran elsewhere are left out with a
// warning. Errors (400) name the part at fault: an unknown role, another type of item or content, a limit.
// `before`: items of the same kind that go before, between the instructions and the input; null: none.
ApiResult<jinja::Value> read_input(const FieldInput& field, const FieldInput* before,
                                   const std::string& instructions, Warnings& warnings);

}  // namespace kvasir::server::api
