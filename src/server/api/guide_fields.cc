#include "server/api/guide_fields.h"

#include <simdjson.h>

#include <string>
#include <utility>

#include "base/printable.h"

namespace kvasir::server::api {
namespace {

constexpr std::string_view kAnyObject = R"({"type":"object"})";

ApiStatus set_guide(const FieldInput& field, Guide guide, GenerationRequest& request) {
  if (request.guide) {
    return bad_request(field.name + " and " + request.guide->field + " both say what form the answer has", field.name);
  }
  request.guide = std::move(guide);
  request.guide->field = field.name;
  return {};
}

// A schema, or one as text.
ApiResult<std::string> schema_of(const FieldInput& field) {
  if (field.json.is_string()) return string_of(field);
  if (!field.json.is_object() && !field.json.is_bool()) return wrong_type(field, "a schema: an object, true or false");
  return simdjson::to_string(field.json);
}

}  // namespace

ApiStatus read_response_format(const FieldInput& field, GenerationRequest& request) {
  KVASIR_TRY(const JsonObject format, object_of(field));
  const auto type = find_member(format, "type");
  if (!type && asks_for_nothing(field.json)) return {};
  if (!type) return bad_request(field.name + ".type is missing", field.name);
  KVASIR_TRY(const std::string name, string_of(field.at("type", *type)));
  if (name == "text") return {};
  if (name == "json_object") return set_guide(field, {.text = std::string(kAnyObject)}, request);
  if (name != "json_schema") return not_supported(field.name, "the type '" + printable_line(name) + "'");
  // Some clients have the schema beside the type.
  const auto wrapped = find_member(format, "json_schema");
  FieldInput inner = wrapped ? field.at("json_schema", *wrapped) : field;
  KVASIR_TRY(const JsonObject object, object_of(inner));
  const auto schema = find_member(object, "schema");
  if (!schema) return bad_request(inner.name + ".schema is missing", field.name);
  KVASIR_TRY(std::string text, schema_of(inner.at("schema", *schema)));
  return set_guide(field, {.text = std::move(text)}, request);
}

ApiStatus read_guided_json(const FieldInput& field, GenerationRequest& request) {
  if (asks_for_nothing(field.json) && !field.json.is_object()) return {};
  KVASIR_TRY(std::string schema, schema_of(field));
  return set_guide(field, {.text = std::move(schema)}, request);
}

ApiStatus read_guided_regex(const FieldInput& field, GenerationRequest& request) {
  if (asks_for_nothing(field.json)) return {};
  KVASIR_TRY(std::string pattern, string_of(field));
  return set_guide(field, {.kind = Guide::Kind::kRegex, .text = std::move(pattern)}, request);
}

ApiStatus read_guided_choice(const FieldInput& field, GenerationRequest& request) {
  if (asks_for_nothing(field.json)) return {};
  KVASIR_TRY(const JsonArray choices, array_of(field));
  Guide guide = {.kind = Guide::Kind::kChoice};
  std::size_t index = 0;
  for (const JsonElement choice : choices) {
    KVASIR_TRY(std::string text, string_of(field.at(index++, choice)));
    guide.choices.push_back(std::move(text));
  }
  return set_guide(field, std::move(guide), request);
}

ApiStatus read_structured_outputs(const FieldInput& field, GenerationRequest& request) {
  if (asks_for_nothing(field.json) && !field.json.is_object()) return {};
  KVASIR_TRY(const JsonObject object, object_of(field));
  for (const auto [key, json] : object) {
    const FieldInput inner = field.at(key, json);
    if (json.is_null() || (key != "json" && asks_for_nothing(json))) continue;
    if (key == "json") {
      KVASIR_CHECKED(read_guided_json(inner, request));
    } else if (key == "regex") {
      KVASIR_CHECKED(read_guided_regex(inner, request));
    } else if (key == "choice") {
      KVASIR_CHECKED(read_guided_choice(inner, request));
    } else if (key == "json_object") {
      KVASIR_CHECKED(set_guide(inner, {.text = std::string(kAnyObject)}, request));
    } else if (key == "grammar" || key == "structural_tag") {
      return not_supported(inner.name, "it");
    } else {
      warn_left_out(inner);
    }
  }
  return {};
}

}  // namespace kvasir::server::api
