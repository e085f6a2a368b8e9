// The fields that say what form an answer must have.
#pragma once

#include "server/api/field.h"
#include "server/api/generation_request.h"

namespace kvasir::server::api {

// OpenAI's {"type": "text" | "json_object" | "json_schema", "json_schema": {"schema": ..}}, and "structural_tag".
ApiStatus read_response_format(const FieldInput& field, GenerationRequest& request);
// vLLM's {"json" | "regex" | "choice" | "grammar" | "json_object" | "structural_tag": ..}, and its older names.
ApiStatus read_structured_outputs(const FieldInput& field, GenerationRequest& request);
ApiStatus read_guided_json(const FieldInput& field, GenerationRequest& request);
ApiStatus read_guided_regex(const FieldInput& field, GenerationRequest& request);
ApiStatus read_guided_choice(const FieldInput& field, GenerationRequest& request);
ApiStatus read_guided_grammar(const FieldInput& field, GenerationRequest& request);
// llama-server's `grammar`.
ApiStatus read_gbnf(const FieldInput& field, GenerationRequest& request);
// As JSON, or as its text.
ApiStatus read_structural_tag(const FieldInput& field, GenerationRequest& request);
// vLLM's list of texts that do not occur in the answer.
ApiStatus read_bad_words(const FieldInput& field, GenerationRequest& request);

}  // namespace kvasir::server::api
