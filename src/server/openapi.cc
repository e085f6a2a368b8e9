// GET /openapi.json
//
// Source: OpenAPI Specification 3.1.1, https://spec.openapis.org/oas/v3.1.1.html
#include "server/openapi.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "base/json_writer.h"
#include "server/auth/key_ring.h"
#include "server/routes.h"

namespace kvasir::server::openapi {
namespace {

using api::Endpoint;
using api::FieldRow;

// Words of a row's type -> types of JSON Schema.
constexpr auto kTypes = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"string", "string"},
    {"boolean", "boolean"},
    {"integer", "integer"},
    {"number", "number"},
    {"object", "object"},
    {"array", "array"},
    {"token ids", "array"},
    {"an array of either", "array"},
    {"array of strings", "array"},
    {"array of integers", "array"},
    {"array of items", "array"},
    {"array of objects", "array"},
    {"array of text blocks", "array"},
});

// "/v1/chat/completions" -> "v1_chat_completions", "/v1/models/*" -> "v1_models_by_id".
std::string name_of(const Endpoint& endpoint) {
  const std::string_view path = endpoint.pattern.substr(1);
  if (path.empty()) return "page";
  std::string name;
  for (const char c : path) {
    if (c == '*') {
      name += "by_id";
    } else {
      name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    }
  }
  return name;
}

bool has_rest(const Endpoint& endpoint) { return endpoint.pattern.contains('*'); }

std::string path_of(const Endpoint& endpoint) {
  std::string path(endpoint.pattern);
  if (has_rest(endpoint)) path.replace(path.find('*'), 1, "{id}");
  return path;
}

// A number beyond what doubles count to stands in no schema: rows leave such ends open.
void write_bound(JsonWriter& json, std::string_view name, double bound) {
  if (bound == static_cast<double>(static_cast<std::int64_t>(bound))) {
    json.member(name, static_cast<std::int64_t>(bound));
  } else {
    json.member(name, bound);
  }
}

// A field that is null counts as absent, so each may be that too.
void write_row(JsonWriter& json, const FieldRow& row, const std::vector<FieldRow>& members = {}) {
  json.key(row.name).begin_object();
  const auto types = schema_types(row.type);
  if (types && !types->empty()) {
    json.key("type").begin_array();
    for (const std::string_view type : *types) json.value(type);
    json.value("null").end_array();
  }
  if (const auto min = api::shown_min(row.range)) {
    write_bound(json, row.range.is_above_min ? "exclusiveMinimum" : "minimum", *min);
  }
  if (const auto max = api::shown_max(row.range)) write_bound(json, "maximum", *max);
  if (row.type == "array of strings") json.key("items").begin_object().member("type", "string").end_object();
  json.member("description", row.meaning);
  if (!members.empty()) {
    json.key("properties").begin_object();
    for (const FieldRow& member : members) write_row(json, member);
    json.end_object();
  }
  json.end_object();
}

void write_body_schema(JsonWriter& json, const Endpoint& endpoint) {
  const api::FieldTable table = endpoint.fields();
  json.key(name_of(endpoint)).begin_object().member("type", "object");
  json.key("properties").begin_object();
  for (const FieldRow& row : table.own) {
    write_row(json, row, row.name == table.object ? table.members : std::vector<FieldRow>());
  }
  for (const FieldRow& row : table.shared) {
    if (std::ranges::find(table.own, row.name, &FieldRow::name) == table.own.end()) write_row(json, row);
  }
  json.end_object().end_object();
}

void write_reference(JsonWriter& json, std::string_view schema) {
  json.key("content").begin_object().key("application/json").begin_object().key("schema").begin_object();
  json.member("$ref", fmt::format("#/components/schemas/{}", schema));
  json.end_object().end_object().end_object();
}

void write_operation(JsonWriter& json, const Endpoint& endpoint) {
  std::string method(endpoint.method);
  std::ranges::transform(method, method.begin(), [](unsigned char c) { return std::tolower(c); });
  json.key(method).begin_object();
  json.member("operationId", fmt::format("{}_{}", method, name_of(endpoint)));
  json.member("summary", endpoint.meaning);
  if (auth::is_public_path(endpoint.pattern)) json.key("security").begin_array().end_array();
  if (has_rest(endpoint)) {
    json.key("parameters").begin_array().begin_object();
    json.member("name", "id").member("in", "path").member("required", true);
    json.key("schema").begin_object().member("type", "string").end_object();
    json.end_object().end_array();
  }
  if (endpoint.fields != nullptr) {
    json.key("requestBody").begin_object().member("required", true);
    write_reference(json, name_of(endpoint));
    json.end_object();
  }
  json.key("responses").begin_object();
  json.key("200").begin_object().member("description", endpoint.meaning).end_object();
  json.key("default").begin_object().member("description", "what is wrong");
  write_reference(json, "error");
  json.end_object().end_object().end_object();
}

// Methods of one path stand together.
void write_paths(JsonWriter& json) {
  json.key("paths").begin_object();
  std::vector<std::string_view> written;
  for (const Endpoint* const first : endpoints()) {
    if (std::ranges::find(written, first->pattern) != written.end()) continue;
    written.push_back(first->pattern);
    json.key(path_of(*first)).begin_object();
    for (const Endpoint* const endpoint : endpoints()) {
      if (endpoint->pattern == first->pattern) write_operation(json, *endpoint);
    }
    json.end_object();
  }
  json.end_object();
}

void write_error_schema(JsonWriter& json) {
  json.key("error").begin_object().member("type", "object").key("properties").begin_object();
  json.key("error").begin_object().member("type", "object").key("properties").begin_object();
  for (const std::string_view name : {"message", "type"}) {
    json.key(name).begin_object().member("type", "string").end_object();
  }
  for (const std::string_view name : {"param", "code"}) {
    json.key(name).begin_object().key("type").begin_array().value("string").value("null").end_array();
    json.end_object();
  }
  json.end_object().end_object().end_object().end_object();
}

void write_components(JsonWriter& json) {
  json.key("components").begin_object().key("schemas").begin_object();
  write_error_schema(json);
  for (const Endpoint* const endpoint : endpoints()) {
    if (endpoint->fields != nullptr) write_body_schema(json, *endpoint);
  }
  json.end_object();
  json.key("securitySchemes").begin_object().key("key").begin_object();
  json.member("type", "http").member("scheme", "bearer").end_object().end_object();
  json.end_object();
}

// It is the same for as long as the process runs.
void answer(const api::ApiContext& context, const api::Writer& writer) {
  static const std::string body = description(context.version);
  writer->respond({.body = body});
}

}  // namespace

std::optional<std::vector<std::string_view>> schema_types(std::string_view row_type) {
  std::vector<std::string_view> types;
  while (!row_type.empty()) {
    const std::size_t comma = row_type.find(", "), either = row_type.find(" or ");
    const std::size_t end = std::min({comma, either, row_type.size()});
    std::string_view word = row_type.substr(0, end);
    if (word.starts_with("or ")) word.remove_prefix(3);
    row_type.remove_prefix(std::min(row_type.size(), end + (end == comma ? 2 : 4)));
    const auto* const known =
        std::ranges::find(kTypes, word, &std::pair<std::string_view, std::string_view>::first);
    if (known == kTypes.end()) return std::nullopt;
    if (std::ranges::find(types, known->second) == types.end()) types.push_back(known->second);
  }
  return types;
}

std::string description(std::string_view version) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("openapi", "3.1.0");
  json.key("info").begin_object().member("title", "Kvasir");
  json.member("version", version.empty() ? "unknown" : version).end_object();
  json.key("servers").begin_array().begin_object().member("url", ".").end_object().end_array();
  json.key("security").begin_array().begin_object().key("key").begin_array().end_array();
  json.end_object().begin_object().end_object().end_array();  // a server without keys asks for none
  write_paths(json);
  write_components(json);
  json.end_object();
  return text;
}

extern const Endpoint kOpenApi = {
    .method = "GET",
    .pattern = "/openapi.json",
    .meaning = "this API as an OpenAPI 3.1 document",
    .answer = [](api::ApiContext& context, const api::Writer& writer,
                 const std::string&) { answer(context, writer); },
    .api = "kvasir",
};

}  // namespace kvasir::server::openapi
