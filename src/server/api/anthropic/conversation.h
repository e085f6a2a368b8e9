// The conversation of a Messages request, in the form that chat templates read.
#pragma once

#include <string>

#include "jinja/value.h"
#include "server/api/conversation_input.h"
#include "server/api/json_input.h"

namespace kvasir::server::api {

// Text: a string, or an array of text blocks, which join with line breaks. Errors (400): another type of
// block.
ApiResult<std::string> read_text_blocks(const FieldInput& field);

// A list of message dicts, `system` first unless it is empty. The results of tools become messages of their
// own, before what the user says beside them; calls of tools and what the assistant thought go with its text.
// Blocks about what ran elsewhere are left out with a warning. Errors (400) name the part at fault: an unknown
// role or type of block, a limit.
ApiResult<jinja::Value> read_conversation(const FieldInput& field, const std::string& system,
                                          Warnings& warnings);

}  // namespace kvasir::server::api
