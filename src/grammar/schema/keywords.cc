#include "grammar/schema/keywords.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace kvasir::grammar {
namespace {

struct KeywordRule {
  std::vector<std::string_view> keywords;
  Status (*read)(KeywordContext& context, const JsonValue& keyword);
};

// Keywords of drafts before 4, such as divisibleBy, would be passed over.
Status read_dialect(KeywordContext& context, const JsonValue& keyword) {
  if (!keyword.is_string()) return {};
  for (const std::string_view draft : {"draft-00", "draft-01", "draft-02", "draft-03"}) {
    if (keyword.text.contains(draft)) {
      return context.fail(keyword, "drafts before 4 are not supported", ErrorKind::kUnmet);
    }
  }
  return {};
}

// In this order members come in the answer: the schema's own first.
const std::vector<KeywordRule>& keyword_rules() {
  static const std::vector<KeywordRule> kRules = {
      {{"$schema"}, &read_dialect},
      {{"type"}, &keyword::read_type},
      {{"enum"}, &keyword::read_enum},
      {{"const"}, &keyword::read_const},
      {{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}, &keyword::read_bounds},
      {{"multipleOf"}, &keyword::read_multiple_of},
      {{"minLength", "maxLength"}, &keyword::read_length},
      {{"pattern"}, &keyword::read_pattern},
      {{"format"}, &keyword::read_format},
      {{"prefixItems", "items"}, &keyword::read_items},
      {{"minItems", "maxItems"}, &keyword::read_item_count},
      {{"uniqueItems"}, &keyword::read_unique_items},
      {{"contains"}, &keyword::read_contains},
      {{"properties", "patternProperties", "additionalProperties"}, &keyword::read_members},
      {{"required"}, &keyword::read_required},
      {{"minProperties", "maxProperties"}, &keyword::read_member_count},
      {{"propertyNames"}, &keyword::read_property_names},
      {{"dependentRequired"}, &keyword::read_dependencies},
      {{"dependentSchemas"}, &keyword::read_dependencies},
      {{"dependencies"}, &keyword::read_dependencies},
      {{"$ref"}, &keyword::read_reference},
      {{"$dynamicRef"}, &keyword::read_reference},
      {{"$recursiveRef"}, &keyword::read_reference},
      {{"allOf"}, &keyword::read_all_of},
      {{"anyOf"}, &keyword::read_any_of},
      {{"oneOf"}, &keyword::read_one_of},
      {{"not"}, &keyword::read_not},
      {{"if"}, &keyword::read_if},
      {{"unevaluatedItems"}, &keyword::read_unevaluated_items},
      {{"unevaluatedProperties"}, &keyword::read_unevaluated_properties},
  };
  return kRules;
}

// A bit for each rule that a member of the schema is for.
std::uint64_t rules_of(const JsonValue& schema) {
  static const std::unordered_map<std::string_view, std::size_t> kPlaces = [] {
    std::unordered_map<std::string_view, std::size_t> places;
    for (std::size_t i = 0; i < keyword_rules().size(); ++i) {
      for (const std::string_view keyword : keyword_rules()[i].keywords) places.emplace(keyword, i);
    }
    return places;
  }();
  std::uint64_t rules = 0;
  for (const auto& child : schema.children) {
    if (const auto found = kPlaces.find(child->key); found != kPlaces.end()) rules |= std::uint64_t{1} << found->second;
  }
  return rules;
}

// Keywords without an effect of their own.
bool is_annotation(std::string_view keyword) {
  static constexpr std::array kAnnotations = std::to_array<std::string_view>(
      {"title", "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly", "$comment",
       "contentEncoding", "contentMediaType", "contentSchema", "$id", "id", "$anchor", "$dynamicAnchor",
       "$recursiveAnchor", "$vocabulary", "$defs", "definitions", "then", "else", "additionalItems", "minContains",
       "maxContains"});
  return std::ranges::find(kAnnotations, keyword) != kAnnotations.end();
}

void note_unknown(KeywordContext& context) {
  for (const auto& child : context.schema().children) {
    const auto is_known = [&](const KeywordRule& rule) {
      return std::ranges::find(rule.keywords, child->key) != rule.keywords.end();
    };
    if (!is_annotation(child->key) && std::ranges::none_of(keyword_rules(), is_known)) {
      context.evaluator().note_ignored(*child);
    }
  }
}

}  // namespace

Status read_keywords(KeywordContext& context) {
  const bool is_reference_alone =
      context.evaluator().references().draft() == SchemaDraft::kUpTo7 && context.find("$ref") != nullptr;
  if (context.evaluator().keeps_notes()) note_unknown(context);
  const std::uint64_t rules = rules_of(context.schema());
  for (std::size_t i = 0; i < keyword_rules().size(); ++i) {
    if ((rules >> i & 1) == 0) continue;
    const KeywordRule& rule = keyword_rules()[i];
    if (is_reference_alone && rule.keywords[0] != "$ref" && rule.keywords[0] != "$schema") continue;
    for (const std::string_view name : rule.keywords) {
      const JsonValue* value = context.find(name);
      if (value == nullptr) continue;
      const Status status = rule.read(context, *value);
      if (!status && !context.evaluator().notes().refused) {
        return context.fail(*value, status.error().message, status.error().kind);
      }
      KVASIR_CHECKED(status);
      break;
    }
  }
  return {};
}

}  // namespace kvasir::grammar
