#include "server/api/rank/rerank_request.h"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <utility>

namespace kvasir::server::api {
namespace {

constexpr double kMostResults = std::numeric_limits<std::int32_t>::max();

ApiStatus read_query(const FieldInput& field, RerankRequest& request) {
  KVASIR_TRY(request.query, rank_text_of(field));
  return {};
}

// vLLM's default is 0.
ApiStatus read_best(const FieldInput& field, RerankRequest& request) {
  KVASIR_TRY(const std::int64_t count, integer_of(field));
  request.top_n.reset();
  if (count > 0) request.top_n = static_cast<std::int32_t>(count);
  return {};
}

constexpr auto kRerankFields = std::to_array<Field<RerankRequest>>({
    {"query", "string or object", {}, "what is looked for: a text, or an object with a text", read_query},
    {"documents",
     "array",
     {},
     "texts, or objects with a text or the fields of rank_fields",
     read_later<RerankRequest>},
    {"texts", "array", {}, "another name for documents; the answer is then a list", read_later<RerankRequest>},
    {"top_n", "integer", {-kMostResults, kMostResults}, "the best so many; absent, 0 and less: all", read_best},
    {"top_k", "integer", {-kMostResults, kMostResults}, "another name for top_n", read_best},
    {"return_documents", "boolean", {}, "with each result its document", read_boolean<&RerankRequest::return_documents>},
    {"return_text", "boolean", {}, "another name for return_documents", read_boolean<&RerankRequest::return_documents>},
    {"rank_fields",
     "array of strings",
     {},
     "the fields of documents that are objects; absent: text",
     read_later<RerankRequest>},
});

ApiResult<std::vector<std::string>> rank_field_names(JsonObject root, const Limits& limits) {
  std::vector<std::string> names;
  const auto given = find_member(root, "rank_fields");
  if (!given) return names;
  const FieldInput field{"rank_fields", *given, limits};
  KVASIR_TRY(const JsonArray list, array_of(field));
  for (const JsonElement json : list) {
    KVASIR_TRY(std::string name, string_of(field.at(names.size(), json)));
    names.push_back(std::move(name));
  }
  return names;
}

// A line for each of the fields that the document has, as Cohere's documents are written.
ApiResult<RankText> text_of_fields(const FieldInput& document, const std::vector<std::string>& names) {
  KVASIR_TRY(const JsonObject object, object_of(document));
  RankText text{.name = document.name, .text = {}};
  for (const std::string& name : names) {
    const auto value = find_member(object, name);
    if (!value) continue;
    KVASIR_TRY(const std::string part, string_of(document.at(name, *value)));
    text.text += fmt::format("{}{}: {}", text.text.empty() ? "" : "\n", name, part);
  }
  if (text.text.empty()) return bad_request(document.name + " has none of the rank_fields", document.name);
  return text;
}

ApiStatus read_documents_now(const FieldInput& field, const std::vector<std::string>& names, RerankRequest& request) {
  KVASIR_TRY(const JsonArray list, array_of(field));
  const auto count = static_cast<std::int64_t>(list.size());
  KVASIR_CHECKED(check_num_texts(field, count));
  for (const JsonElement json : list) {
    const FieldInput document = field.at(request.documents.size(), json);
    const bool has_fields = json.is_object() && !names.empty();
    KVASIR_TRY(RankText text, has_fields ? text_of_fields(document, names) : rank_text_of(document));
    request.documents.push_back(std::move(text));
    request.document_json.push_back(json.is_object() ? std::string(simdjson::minify(json)) : std::string());
  }
  return {};
}

}  // namespace

std::span<const Field<RerankRequest>> rerank_fields() { return kRerankFields; }

ApiResult<RerankRequest> parse_rerank_request(std::string_view body, const Limits& limits, Warnings& warnings) {
  KVASIR_TRY(const JsonDocument document, JsonDocument::parse(body, limits));
  RerankRequest request;
  KVASIR_CHECKED(read_fields(document.root(), pair_fields(), rerank_fields(), limits, request, warnings));
  const auto documents = find_member(document.root(), "documents"), texts = find_member(document.root(), "texts");
  if (!find_member(document.root(), "query")) return bad_request("query is missing", "query", "missing_parameter");
  if (!documents && !texts) return bad_request("documents is missing", "documents", "missing_parameter");
  if (documents && texts) return bad_request("documents and texts are given, one is wanted", "texts");
  request.is_list = texts.has_value();
  KVASIR_TRY(const std::vector<std::string> names, rank_field_names(document.root(), limits));
  const FieldInput field{texts ? "texts" : "documents", texts ? *texts : *documents, limits, {}, &warnings};
  KVASIR_CHECKED(read_documents_now(field, names, request));
  if (request.documents.empty()) return bad_request(field.name + " must not be empty", field.name);
  return request;
}

}  // namespace kvasir::server::api
