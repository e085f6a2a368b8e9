#include "server/api/ollama/embed_request.h"

#include <array>
#include <limits>
#include <utility>
#include <variant>

#include "server/api/ollama/options.h"

namespace kvasir::server::api {
namespace {

constexpr double kMostDimensions = std::numeric_limits<std::int32_t>::max();

ApiStatus read_inputs(const FieldInput& field, OllamaEmbedRequest& request) {
  const bool is_list_or_text = field.json.is_array() || field.json.is_string();
  if (is_list_or_text && asks_for_nothing(field.json)) return {};  // whether there are embeddings
  KVASIR_TRY(request.inputs, prompts_of(field, field.limits.inputs));
  for (const PlainPrompt& input : request.inputs) {
    if (!std::holds_alternative<std::string>(input.content)) {
      return bad_request(input.name + " must be a string", input.name);
    }
  }
  return {};
}

// An older client may send no text to see whether there are embeddings.
ApiStatus read_text(const FieldInput& field, OllamaEmbedRequest& request) {
  KVASIR_TRY(std::string text, string_of(field));
  if (!text.empty()) request.inputs = {PlainPrompt{field.name, std::move(text)}};
  return {};
}

ApiStatus read_embed_keep_alive(const FieldInput& field, OllamaEmbedRequest&) { return check_keep_alive(field); }

constexpr Field<OllamaEmbedRequest> kEmbedModel = {
    "model", "string", {}, "whose embeddings; absent: those of the one there is", read_string<&OllamaEmbedRequest::model>};
constexpr Field<OllamaEmbedRequest> kEmbedKeepAlive = {
    "keep_alive", "string or number", {}, "accepted; the model stays loaded", read_embed_keep_alive};
constexpr Field<OllamaEmbedRequest> kEmbedOptions = {
    "options", "object", {}, "accepted; no option changes an embedding", read_unused<object_of, OllamaEmbedRequest>};
constexpr Field<OllamaEmbedRequest> kEmbedTruncate = {
    "truncate",
    "boolean",
    {},
    "false: a text beyond the context is refused; else its end is cut, and a warning says so",
    read_boolean<&OllamaEmbedRequest::truncates>};

constexpr auto kEmbedFields = std::to_array<Field<OllamaEmbedRequest>>({
    {"input", "string or array of strings", {}, "the texts; each gives one embedding", read_inputs},
    {"dimensions",
     "integer",
     {0, kMostDimensions},
     "the first so many numbers alone, again of length 1; 0 or absent: all",
     read_integer<&OllamaEmbedRequest::dimensions>},
    kEmbedModel,
    kEmbedTruncate,
    kEmbedOptions,
    kEmbedKeepAlive,
});

constexpr auto kEmbeddingsFields = std::to_array<Field<OllamaEmbedRequest>>({
    {"prompt", "string", {}, "the text", read_text},
    kEmbedModel,
    kEmbedTruncate,
    kEmbedOptions,
    kEmbedKeepAlive,
});

ApiResult<OllamaEmbedRequest> parse_embed(std::string_view body, const Limits& limits, Warnings& warnings,
                                          std::span<const Field<OllamaEmbedRequest>> fields) {
  KVASIR_TRY(const JsonDocument document, JsonDocument::parse(body, limits));
  OllamaEmbedRequest request;
  KVASIR_CHECKED(
      read_fields(document.root(), std::span<const Field<OllamaEmbedRequest>>(), fields, limits, request, warnings));
  return request;  // without a text it asks whether there are embeddings
}

}  // namespace

std::span<const Field<OllamaEmbedRequest>> ollama_embed_fields() { return kEmbedFields; }
std::span<const Field<OllamaEmbedRequest>> ollama_embeddings_fields() { return kEmbeddingsFields; }

ApiResult<OllamaEmbedRequest> parse_ollama_embed(std::string_view body, const Limits& limits, Warnings& warnings) {
  return parse_embed(body, limits, warnings, kEmbedFields);
}

ApiResult<OllamaEmbedRequest> parse_ollama_embeddings(std::string_view body, const Limits& limits, Warnings& warnings) {
  return parse_embed(body, limits, warnings, kEmbeddingsFields);
}

}  // namespace kvasir::server::api
