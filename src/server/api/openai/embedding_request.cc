#include "server/api/openai/embedding_request.h"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <utility>

#include "base/printable.h"

namespace kvasir::server::api {
namespace {

constexpr double kMaxInt32 = std::numeric_limits<std::int32_t>::max();

// One of two words.
ApiResult<bool> is_second_of(const FieldInput& field, std::string_view first, std::string_view second) {
  KVASIR_TRY(const std::string word, string_of(field));
  if (word == first || word == second) return word == second;
  return bad_request(
      fmt::format("{} must be \"{}\" or \"{}\", got \"{}\"", field.name, first, second, printable(word)),
      field.name);
}

ApiStatus read_input(const FieldInput& field, EmbeddingRequest& request) {
  KVASIR_TRY(request.inputs, prompts_of(field, field.limits.inputs));
  return {};
}

ApiStatus read_encoding(const FieldInput& field, EmbeddingRequest& request) {
  if (asks_for_nothing(field.json)) return {};
  KVASIR_TRY(request.is_base64, is_second_of(field, "float", "base64"));
  return {};
}

ApiStatus read_pooling(const FieldInput& field, EmbeddingRequest& request) {
  constexpr std::pair<std::string_view, Pooling> kPoolings[] = {
      {"mean", Pooling::kMean}, {"last", Pooling::kLast}, {"cls", Pooling::kFirst}};
  KVASIR_TRY(const std::string word, string_of(field));
  if (word.empty()) return {};
  for (const auto& [name, pooling] : kPoolings) {
    if (word != name) continue;
    request.pooling = pooling;
    return {};
  }
  return bad_request(
      fmt::format("{} must be \"mean\", \"last\" or \"cls\", got \"{}\"", field.name, printable(word)), field.name);
}

// Nothing, where the text is empty.
template <std::optional<std::string> PromptWish::*Member>
ApiStatus read_prompt_word(const FieldInput& field, EmbeddingRequest& request) {
  KVASIR_TRY(std::string word, string_of(field));
  if (!word.empty()) request.prompt.*Member = std::move(word);
  return {};
}

ApiStatus read_prompt_text(const FieldInput& field, EmbeddingRequest& request) {
  KVASIR_TRY(request.prompt.prompt, string_of(field));
  return {};
}

// llama-server and Ollama pass over 0 and less.
ApiStatus read_dimensions(const FieldInput& field, EmbeddingRequest& request) {
  KVASIR_TRY(const std::int64_t count, integer_of(field));
  request.dimensions.reset();
  if (count > 0) request.dimensions = static_cast<std::int32_t>(count);
  return {};
}

constexpr auto kReadInputType = &read_prompt_word<&PromptWish::input_type>;
constexpr auto kLeftOut = &read_ignored<EmbeddingRequest>;

constexpr auto kFields = std::to_array<Field<EmbeddingRequest>>({
    {"model",
     "string",
     {},
     "whose embeddings; absent: those of the one there is",
     read_string<&EmbeddingRequest::model>},
    {"input",
     "string, token ids, or an array of either",
     {},
     "the texts; each gives one embedding",
     read_input},
    {"encoding_format",
     "string",
     {},
     "\"float\", or \"base64\" of little-endian 32-bit floats",
     read_encoding},
    {"pooling",
     "string",
     {},
     "\"mean\" of all tokens' hidden states, the \"last\" one's or that of the first, \"cls\"; absent: as the model's "
     "file says, else the mean",
     read_pooling},
    {"dimensions",
     "integer",
     {-kMaxInt32, kMaxInt32},
     "the first so many numbers alone, again of length 1; absent, 0 and less: all",
     read_dimensions},
    {"prompt_name",
     "string",
     {},
     "the model's prompt of that name goes before each text; a model's folder names them",
     read_prompt_word<&PromptWish::prompt_name>},
    {"prompt", "string", {}, "this text goes before each text; empty: none does", read_prompt_text},
    {"input_type",
     "string",
     {},
     "what the texts are for: query, document, passage, search_query, search_document or the name of a prompt; the "
     "model's prompt for that goes before each",
     kReadInputType},
    {"task", "string", {}, "another name for input_type, also retrieval.query and retrieval.passage", kReadInputType},
    {"add_special_tokens",
     "boolean",
     {},
     "BOS where the model wants it",
     read_boolean<&EmbeddingRequest::add_special_tokens>},
    {"parse_special",
     "boolean",
     {},
     "false: control tokens written in an input are plain text",
     read_boolean<&EmbeddingRequest::parse_special>},
    {"priority",
     "integer",
     {-kMaxInt32, kMaxInt32},
     "lower runs first; below 0 before the key's others, in their places",
     read_integer<&EmbeddingRequest::priority>},
    {"user", "string", {}, "accepted", read_unused<string_of>},
    {"metadata", "object", {}, "accepted", read_unused<object_of>},
    {"safety_identifier", "string", {}, "accepted", read_unused<string_of>},
    {"request_id", "string", {}, "accepted; the answer has an id of its own", read_unused<string_of>},
    {"normalize", "boolean", {}, "accepted; embeddings have length 1", read_unused<boolean_of>},
    {"truncate_prompt_tokens", "integer", {}, "left out: a text is never cut", kLeftOut},
    {"truncate", "boolean or string", {}, "left out: a text is never cut", kLeftOut},
});

}  // namespace

std::span<const Field<EmbeddingRequest>> embedding_fields() { return kFields; }

ApiResult<EmbeddingRequest> parse_embedding_request(std::string_view body, const Limits& limits,
                                                    Warnings& warnings) {
  KVASIR_TRY(const JsonDocument document, JsonDocument::parse(body, limits));
  EmbeddingRequest request;
  KVASIR_CHECKED(read_fields(document.root(), std::span<const Field<EmbeddingRequest>>(), embedding_fields(),
                             limits, request, warnings));
  if (request.inputs.empty()) return bad_request("input is missing", "input", "missing_parameter");
  return request;
}

}  // namespace kvasir::server::api
