// The `options` of Ollama's clients.
#pragma once

#include <vector>

#include "server/api/field.h"
#include "server/api/field_reference.h"
#include "server/api/ollama/ollama_request.h"

namespace kvasir::server::api {

// The row of `options`: each member is read as the field that it is elsewhere, or left out with a warning. Errors (400)
// name the member.
ApiStatus read_options(const FieldInput& field, OllamaRequest& request);
std::vector<FieldRow> option_rows();

}  // namespace kvasir::server::api
