#include <algorithm>
#include <utility>
#include <vector>

#include "grammar/regex/pattern.h"
#include "grammar/schema/keywords.h"

namespace kvasir::grammar::keyword {
namespace {

Status need_members(KeywordContext& context, const JsonValue& keyword) {
  if (keyword.is_object()) return {};
  return context.fail(keyword, "is no object");
}

Result<std::vector<std::string>> keys_of(KeywordContext& context, const JsonValue& keyword) {
  if (!keyword.is_array()) return context.fail(keyword, "is no list");
  std::vector<std::string> keys;
  for (const auto& key : keyword.children) {
    if (!key->is_string()) return context.fail(*key, "is no text");
    if (std::ranges::find(keys, key->text) == keys.end()) keys.push_back(key->text);
  }
  return keys;
}

// Values without the key, and others as `then` has them.
Status add_dependency(KeywordContext& context, const std::string& key, const Cells& then) {
  Cells without = context.algebra().any_value();
  without.objects = {ObjectCell{.absent = {key}}};
  Cells with;
  with.objects = {ObjectCell{.required = {key}}};
  KVASIR_TRY(const Cells both, context.algebra().both(with, then));
  return context.add_as_is(CellAlgebra::either(std::move(without), both));
}

}  // namespace

Status read_members(KeywordContext& context, const JsonValue&) {
  MemberRule rule;
  std::vector<TermId> doubtful;
  if (const JsonValue* properties = context.find("properties")) {
    KVASIR_CHECKED(need_members(context, *properties));
    for (const auto& schema : properties->children) {
      rule.properties.emplace_back(schema->key, context.name_of(*schema));
    }
  }
  if (const JsonValue* patterns = context.find("patternProperties")) {
    KVASIR_CHECKED(need_members(context, *patterns));
    for (const auto& schema : patterns->children) {
      auto keys = pattern_language(context.store(), schema->key, PatternFit::kFound, ClassReading::kNarrow);
      if (!keys) return context.fail(*schema, keys.error().message, keys.error().kind);
      KVASIR_TRY(const TermId perhaps, pattern_language(context.store(), schema->key, PatternFit::kFound, ClassReading::kWide));
      rule.patterns.emplace_back(*keys, context.name_of(*schema));
      doubtful.push_back(context.store().without(perhaps, *keys));
    }
  }
  if (const JsonValue* others = context.find("additionalProperties")) {
    rule.others = context.name_of(*others);
    rule.has_others = true;
  }
  ObjectCell cell = {.rules = {std::move(rule)}};
  // Keys that only some validators take as matching are in no answer.
  const TermId keys = context.store().any_of(std::move(doubtful));
  if (keys != kNothing && !context.is_complement()) {
    cell.names = context.store().complement(keys);
    cell.has_names = true;
  }
  return context.add_objects(cell);
}

Status read_required(KeywordContext& context, const JsonValue& keyword) {
  if (keyword.is_bool()) return {};  // draft 3's
  KVASIR_TRY(std::vector<std::string> keys, keys_of(context, keyword));
  return context.add_objects({.required = std::move(keys)});
}

Status read_member_count(KeywordContext& context, const JsonValue& keyword) {
  ObjectCell cell;
  if (const JsonValue* value = context.find("minProperties")) {
    KVASIR_TRY(cell.min_members, context.count_of(*value));
  }
  if (const JsonValue* value = context.find("maxProperties")) {
    KVASIR_TRY(cell.max_members, context.count_of(*value));
  }
  if (cell.min_members > cell.max_members) return context.fail(keyword, "minProperties is above maxProperties");
  return context.add_objects(cell);
}

Status read_property_names(KeywordContext& context, const JsonValue& keyword) {
  KVASIR_TRY(const Cells* cells, context.cells_of(keyword, /*is_complement=*/false));
  std::vector<TermId> names;
  for (const StringCell& cell : cells->strings) names.push_back(cell.texts);
  ObjectCell cell = {.names = context.store().any_of(std::move(names)), .has_names = true};
  return context.add_objects(cell);
}

Status read_dependencies(KeywordContext& context, const JsonValue& keyword) {
  KVASIR_CHECKED(need_members(context, keyword));
  if (context.is_complement()) {
    return context.fail(keyword, "the complement of a dependency is not supported", ErrorKind::kUnmet);
  }
  for (const auto& dependency : keyword.children) {
    if (dependency->is_array()) {
      KVASIR_TRY(std::vector<std::string> keys, keys_of(context, *dependency));
      Cells then;
      then.objects = {ObjectCell{.required = std::move(keys)}};
      KVASIR_CHECKED(add_dependency(context, dependency->key, then));
    } else {
      KVASIR_TRY(const Cells* then, context.cells_of(*dependency, /*is_complement=*/false));
      KVASIR_CHECKED(add_dependency(context, dependency->key, *then));
    }
  }
  return {};
}

// Members that no schema beside it says anything about.
Status read_unevaluated_properties(KeywordContext& context, const JsonValue& keyword) {
  if (context.is_complement()) {
    return context.fail(keyword, "the complement of unevaluatedProperties is not supported", ErrorKind::kUnmet);
  }
  Cells cells = context.result();
  for (ObjectCell& cell : cells.objects) {
    MemberRule rule = {.properties = {}, .patterns = {}, .others = context.name_of(keyword), .has_others = true};
    bool is_all_evaluated = false;
    for (const MemberRule& other : cell.rules) {
      if (!other.is_assertion) continue;
      is_all_evaluated = is_all_evaluated || other.has_others;
      for (const auto& property : other.properties) rule.properties.emplace_back(property.first, kAnyValue);
      for (const auto& pattern : other.patterns) rule.patterns.emplace_back(pattern.first, kAnyValue);
    }
    if (!is_all_evaluated) cell.rules.push_back(std::move(rule));
  }
  context.set_result(std::move(cells));
  return {};
}

}  // namespace kvasir::grammar::keyword
