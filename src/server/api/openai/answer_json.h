// The pieces of JSON that OpenAI's answers share.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/json_writer.h"
#include "kvasir/engine.h"
#include "kvasir/request.h"
#include "server/api/api_context.h"
#include "server/api/generation_request.h"

namespace kvasir::server::api {

// The members at the top of every answer and every chunk of it.
struct AnswerHeader {
  std::string id;
  std::int64_t created_s = 0;  // Unix time
  std::string model;
  std::string fingerprint;
  bool include_usage = false;         // in a last chunk; the others say null
  bool usage_in_every_chunk = false;  // instead
};

// For a new answer, with an id that begins with the prefix.
AnswerHeader make_answer_header(ApiContext& context, const GenerationRequest& request,
                                std::string_view id_prefix);

// Opens the object and writes id, object, created, model, system_fingerprint.
JsonWriter& begin_answer(JsonWriter& json, const AnswerHeader& header, std::string_view object);
// {"prompt_tokens",...}. The thoughts among the completion's tokens have a member where there are any.
// Nothing where `ended_by` is empty: the answer was not chosen from several.
void write_search(JsonWriter& json, std::string_view ended_by);
void write_usage(JsonWriter& json, const Usage& usage, std::int32_t num_reasoning_tokens = 0);
// Writes "usage" of a chunk, as far as it has one, and closes the object.
void end_chunk(JsonWriter& json, const AnswerHeader& header, const Usage& usage,
               std::int32_t num_reasoning_tokens = 0);
// The chunk with the usage and no choices.
std::string usage_chunk(const AnswerHeader& header, std::string_view object, const Usage& usage,
                        std::int32_t num_reasoning_tokens = 0);

// "stop" or "length". Requires: the choice neither failed nor was cancelled.
std::string_view finish_reason_name(FinishReason reason);

// Stands for the configuration that made an answer: equal ones with equal seeds give equal tokens.
std::string system_fingerprint(const ModelInfo& model);

}  // namespace kvasir::server::api
