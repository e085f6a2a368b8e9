// Conversations as Ollama's clients send them.
#pragma once

#include "jinja/value.h"
#include "server/api/json_input.h"
#include "server/api/warnings.h"

namespace kvasir::server::api {

// As chat templates read them. Calls that have no id get one, and results belong to the first call before them that has
// the tool's name, or any where none is named, and no result yet. Errors (400) name the part at fault: a limit, an image.
ApiResult<jinja::Value> read_ollama_messages(const FieldInput& field, Warnings& warnings);

// Error (400): there is an image.
ApiStatus check_no_images(const FieldInput& images);

}  // namespace kvasir::server::api
