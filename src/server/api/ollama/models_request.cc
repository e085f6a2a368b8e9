#include "server/api/ollama/models_request.h"

#include <array>

namespace kvasir::server::api {
namespace {

using ModelField = Field<OllamaModelRequest>;

constexpr ModelField kNamedModel = {"model", "string", {}, "which model", read_string<&OllamaModelRequest::model>};
constexpr ModelField kOlderName = {"name", "string", {}, "an older name of model", read_string<&OllamaModelRequest::model>};

constexpr auto kShowFields = std::to_array<ModelField>({
    kNamedModel,
    kOlderName,
    {"verbose", "boolean", {}, "accepted; the vocabulary is not shown", read_unused<boolean_of, OllamaModelRequest>},
    {"system", "string", {}, "left out: nothing is changed", read_ignored<OllamaModelRequest>},
    {"template", "string", {}, "left out: nothing is changed", read_ignored<OllamaModelRequest>},
    {"options", "object", {}, "left out: nothing is changed", read_ignored<OllamaModelRequest>},
});

constexpr auto kPullFields = std::to_array<ModelField>({
    kNamedModel,
    kOlderName,
    {"stream", "boolean", {}, "a line of JSON for each step; true by default", read_boolean<&OllamaModelRequest::stream>},
    {"insecure", "boolean", {}, "left out: every download is checked", read_ignored<OllamaModelRequest>},
    {"username", "string", {}, "left out: no user is known", read_ignored<OllamaModelRequest>},
    {"password", "string", {}, "left out: no user is known", read_ignored<OllamaModelRequest>},
});

constexpr auto kDeleteFields = std::to_array<ModelField>({kNamedModel, kOlderName});

ApiResult<OllamaModelRequest> parse_model(std::string_view body, const Limits& limits, Warnings& warnings,
                                          std::span<const ModelField> fields) {
  KVASIR_TRY(const JsonDocument document, JsonDocument::parse(body, limits));
  OllamaModelRequest request;
  KVASIR_CHECKED(read_fields(document.root(), std::span<const ModelField>(), fields, limits, request, warnings));
  if (request.model.empty()) return bad_request("model is required", "model", "missing_parameter");
  return request;
}

}  // namespace

std::span<const ModelField> ollama_show_fields() { return kShowFields; }
std::span<const ModelField> ollama_pull_fields() { return kPullFields; }
std::span<const ModelField> ollama_delete_fields() { return kDeleteFields; }

ApiResult<OllamaModelRequest> parse_ollama_show(std::string_view body, const Limits& limits, Warnings& warnings) {
  return parse_model(body, limits, warnings, kShowFields);
}

ApiResult<OllamaModelRequest> parse_ollama_pull(std::string_view body, const Limits& limits, Warnings& warnings) {
  return parse_model(body, limits, warnings, kPullFields);
}

ApiResult<OllamaModelRequest> parse_ollama_delete(std::string_view body, const Limits& limits, Warnings& warnings) {
  return parse_model(body, limits, warnings, kDeleteFields);
}

}  // namespace kvasir::server::api
