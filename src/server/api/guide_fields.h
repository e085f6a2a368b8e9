// The fields that say what form an answer must have.
#pragma once

#include "server/api/field.h"
#include "server/api/generation_request.h"

namespace kvasir::server::api {

// OpenAI's {"type": "text" | "json_object" | "json_schema", "json_schema": {"schema": ..}}.
ApiStatus read_response_format(const FieldInput& field, GenerationRequest& request);
// vLLM's {"json" | "regex" | "choice" | "json_object": ..}, and its older names for the same.
ApiStatus read_structured_outputs(const FieldInput& field, GenerationRequest& request);
ApiStatus read_guided_json(const FieldInput& field, GenerationRequest& request);
ApiStatus read_guided_regex(const FieldInput& field, GenerationRequest& request);
ApiStatus read_guided_choice(const FieldInput& field, GenerationRequest& request);

}  // namespace kvasir::server::api
