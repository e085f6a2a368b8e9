#include "server/api/guide_fields.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

ApiResult<std::vector<std::string>> texts_of(const FieldInput& field) {
  KVASIR_TRY(const JsonArray array, array_of(field));
  std::vector<std::string> texts;
  for (const JsonElement element : array) {
    KVASIR_TRY(std::string text, string_of(field.at(texts.size(), element)));
    texts.push_back(std::move(text));
  }
  return texts;
}

}  // namespace

ApiStatus read_response_format(const FieldInput& field, GenerationRequest& request) {
  const bool is_list_or_text = field.json.is_string() || field.json.is_array();
  if (is_list_or_text && asks_for_nothing(field.json)) return {};
  KVASIR_TRY(const JsonObject format, object_of(field));
  const auto type = find_member(format, "type");
  if (!type && asks_for_nothing(field.json)) return {};
  if (!type) return bad_request(field.name + ".type is missing", field.name);
  KVASIR_TRY(const std::string name, string_of(field.at("type", *type)));
  if (name == "text") return {};
  if (name == "json_object") {  // llama-server's has a schema beside it
    Guide guide{.text = std::string(kAnyObject), .is_strict = true};
    if (const auto schema = find_member(format, "schema"); schema && !schema->is_null()) {
      KVASIR_TRY(guide.text, schema_of(field.at("schema", *schema)));
    }
    return set_guide(field, std::move(guide), request);
  }
  if (name == "structural_tag") {
    return set_guide(field, {.kind = Guide::Kind::kStructuralTag, .text = simdjson::to_string(field.json)}, request);
  }
  if (name != "json_schema") return not_supported(field.name, "the type '" + printable_line(name) + "'");
  // Some clients have the schema beside the type.
  const auto wrapped = find_member(format, "json_schema");
  FieldInput inner = wrapped ? field.at("json_schema", *wrapped) : field;
  KVASIR_TRY(const JsonObject object, object_of(inner));
  const auto schema = find_member(object, "schema");
  Guide guide{.text = std::string(kAnyObject), .is_strict = true};
  if (schema && !schema->is_null()) {
    KVASIR_TRY(guide.text, schema_of(inner.at("schema", *schema)));
  } else {
    const bool is_chat = field.name == "response_format" && !wrapped;
    field.warnings->add(fmt::format("{}{}.schema is missing: the answer is any JSON object", inner.name, is_chat ? ".json_schema" : ""));
  }
  if (const auto strict = find_member(object, "strict")) {
    KVASIR_TRY(guide.is_strict, boolean_of(inner.at("strict", *strict)));
  }
  return set_guide(field, std::move(guide), request);
}

ApiStatus read_guided_json(const FieldInput& field, GenerationRequest& request) {
  if (asks_for_nothing(field.json) && !field.json.is_object()) return {};
  KVASIR_TRY(std::string schema, schema_of(field));
  return set_guide(field, {.text = std::move(schema), .is_strict = true}, request);
}

ApiStatus read_guided_regex(const FieldInput& field, GenerationRequest& request) {
  if (asks_for_nothing(field.json)) return {};
  KVASIR_TRY(std::string pattern, string_of(field));
  return set_guide(field, {.kind = Guide::Kind::kRegex, .text = std::move(pattern)}, request);
}

ApiStatus read_guided_choice(const FieldInput& field, GenerationRequest& request) {
  if (asks_for_nothing(field.json)) return {};
  KVASIR_TRY(std::vector<std::string> choices, texts_of(field));
  return set_guide(field, {.kind = Guide::Kind::kChoice, .choices = std::move(choices)}, request);
}

ApiStatus read_bad_words(const FieldInput& field, GenerationRequest& request) {
  if (asks_for_nothing(field.json)) return {};
  KVASIR_TRY(request.bad_words, texts_of(field));
  return {};
}

ApiStatus read_guided_grammar(const FieldInput& field, GenerationRequest& request) {
  if (asks_for_nothing(field.json)) return {};
  KVASIR_TRY(std::string grammar, string_of(field));
  return set_guide(field, {.kind = Guide::Kind::kXGrammar, .text = std::move(grammar)}, request);
}

ApiStatus read_gbnf(const FieldInput& field, GenerationRequest& request) {
  if (asks_for_nothing(field.json)) return {};
  KVASIR_TRY(std::string grammar, string_of(field));
  return set_guide(field, {.kind = Guide::Kind::kGbnf, .text = std::move(grammar)}, request);
}

ApiStatus read_structural_tag(const FieldInput& field, GenerationRequest& request) {
  if (asks_for_nothing(field.json)) return {};
  std::string tag;
  if (field.json.is_object()) {
    tag = simdjson::to_string(field.json);
  } else {
    KVASIR_TRY(tag, string_of(field));
  }
  return set_guide(field, {.kind = Guide::Kind::kStructuralTag, .text = std::move(tag)}, request);
}

ApiStatus read_structured_outputs(const FieldInput& field, GenerationRequest& request) {
  using Read = ApiStatus (*)(const FieldInput&, GenerationRequest&);
  constexpr std::pair<std::string_view, Read> kForms[] = {{"json", read_guided_json},
                                                          {"regex", read_guided_regex},
                                                          {"choice", read_guided_choice},
                                                          {"grammar", read_guided_grammar},
                                                          {"structural_tag", read_structural_tag}};
  if (asks_for_nothing(field.json) && !field.json.is_object()) return {};
  KVASIR_TRY(const JsonObject object, object_of(field));
  for (const auto [key, json] : object) {
    const FieldInput inner = field.at(key, json);
    const auto form = std::ranges::find(kForms, key, &std::pair<std::string_view, Read>::first);
    if (json.is_null()) continue;
    if (form != std::end(kForms)) {
      KVASIR_CHECKED(form->second(inner, request));
    } else if (asks_for_nothing(json)) {
      continue;
    } else if (key == "json_object") {
      KVASIR_CHECKED(set_guide(inner, {.text = std::string(kAnyObject)}, request));
    } else if (key == "whitespace_pattern") {
      return not_supported(inner.name, "it");
    } else if (key != "disable_any_whitespace" && key != "disable_additional_properties" && key != "disable_fallback") {
      warn_left_out(inner);
    }
  }
  if (!request.guide) return {};
  const auto is_set = [&](std::string_view name) {
    const auto member = find_member(object, name);
    return member && !asks_for_nothing(*member);
  };
  request.guide->is_compact = is_set("disable_any_whitespace");
  // A small model that may add members goes on adding them: they come where the request says so.
  if (const auto closes = find_member(object, "disable_additional_properties"); closes && closes->is_bool()) {
    request.guide->is_strict = closes->get_bool().value();
  }
  return {};
}

}  // namespace kvasir::server::api
