#include <algorithm>
#include <string_view>
#include <unordered_set>
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
  std::unordered_set<std::string_view> known;
  for (const auto& key : keyword.children) {
    if (!key->is_string()) return context.fail(*key, "is no text");
    if (known.insert(key->text).second) keys.push_back(key->text);
  }
  return keys;
}

// Values without the key, and others as `then` has them; in a complement, values with the key as `then` has them.
Status add_dependency(KeywordContext& context, const std::string& key, const Cells& then) {
  Cells with;
  with.objects = {ObjectCell{.required = {key}}};
  KVASIR_TRY(const Cells both, context.algebra().both(with, then));
  if (context.is_complement()) return context.add_as_is(both);
  Cells without = context.algebra().any_value();
  without.objects = {ObjectCell{.absent = {key}}};
  return context.add_as_is(CellAlgebra::either(without, both));
}

}  // namespace

Status read_members(KeywordContext& context, const JsonValue&) {
  MemberRule rule;
  if (const JsonValue* properties = context.find("properties")) {
    KVASIR_CHECKED(need_members(context, *properties));
    for (const auto& schema : properties->children) {
      rule.properties.emplace_back(schema->key, context.name_of(*schema));
    }
  }
  if (const JsonValue* patterns = context.find("patternProperties")) {
    std::vector<TermId> doubtful;
    KVASIR_CHECKED(need_members(context, *patterns));
    for (const auto& schema : patterns->children) {
      auto keys = pattern_language(context.store(), schema->key, PatternFit::kFound, ClassReading::kNarrow);
      if (!keys) return context.fail(*schema, keys.error().message, keys.error().kind);
      KVASIR_TRY(const TermId perhaps, pattern_language(context.store(), schema->key, PatternFit::kFound, ClassReading::kWide));
      rule.patterns.emplace_back(*keys, context.name_of(*schema));
      if (perhaps == *keys) continue;
      doubtful.push_back(context.store().without(perhaps, *keys));
      context.note_narrowed(*schema, "keys that only some validators find a match in are not written");
    }
    rule.doubtful = context.store().any_of(std::move(doubtful));
  }
  if (const JsonValue* others = context.find("additionalProperties")) {
    rule.others = context.name_of(*others);
    rule.has_others = true;
  }
  return context.add_objects({.rules = {std::move(rule)}});
}

Status read_required(KeywordContext& context, const JsonValue& keyword) {
  if (keyword.is_bool()) {  // draft 3's
    context.evaluator().note_ignored(keyword);
    return {};
  }
  KVASIR_TRY(std::vector<std::string> keys, keys_of(context, keyword));
  return context.add_objects({.required = std::move(keys)});
}

Status read_member_count(KeywordContext& context, const JsonValue&) {
  ObjectCell cell;
  if (const JsonValue* value = context.find("minProperties")) {
    KVASIR_TRY(cell.min_members, context.count_of(*value));
  }
  if (const JsonValue* value = context.find("maxProperties")) {
    KVASIR_TRY(cell.max_members, context.count_of(*value));
  }
  if (cell.min_members <= cell.max_members) return context.add_objects(cell);
  Cells no_objects = context.algebra().any_value();
  no_objects.objects.clear();
  return context.add(no_objects);
}

Status read_property_names(KeywordContext& context, const JsonValue& keyword) {
  KVASIR_TRY(const Cells* cells, context.cells_of(keyword, context.is_complement()));
  std::vector<TermId> names;
  bool is_exact = !cells->is_narrowed;
  for (const StringCell& cell : cells->strings) {
    names.push_back(cell.texts);
    is_exact = is_exact && cell.texts == cell.perhaps;
  }
  const TermId texts = context.store().any_of(std::move(names));
  Cells found = context.is_complement() ? Cells() : context.algebra().any_value();
  if (context.is_complement()) {
    found.objects = {ObjectCell{.contains = {{.keys = texts}}}};
  } else {
    found.objects = {ObjectCell{.names = texts, .has_names = true}};
  }
  found.is_narrowed = !is_exact;
  return context.add_as_is(found);
}

Status read_dependencies(KeywordContext& context, const JsonValue& keyword) {
  KVASIR_CHECKED(need_members(context, keyword));
  for (const auto& dependency : keyword.children) {
    if (dependency->is_array()) {
      KVASIR_TRY(std::vector<std::string> keys, keys_of(context, *dependency));
      Cells then;
      if (context.is_complement()) {
        for (const std::string& other : keys) then.objects.push_back(ObjectCell{.absent = {other}});
      } else {
        then.objects = {ObjectCell{.required = std::move(keys)}};
      }
      KVASIR_CHECKED(add_dependency(context, dependency->key, then));
    } else {
      KVASIR_TRY(const Cells* then, context.cells_of(*dependency, context.is_complement()));
      KVASIR_CHECKED(add_dependency(context, dependency->key, *then));
    }
  }
  return {};
}

// Members that no schema beside it says anything about.
Status read_unevaluated_properties(KeywordContext& context, const JsonValue& keyword) {
  if (context.is_complement()) {
    context.narrow(keyword, "a complement takes no object because of it");
    return {};
  }
  Cells cells = context.result();
  // Several cases that hold at once would let more members pass.
  cells.is_narrowed = cells.is_narrowed || cells.objects.size() > 1;
  for (ObjectCell& cell : cells.objects) {
    MemberRule rule = {.properties = {}, .patterns = {}, .others = context.name_of(keyword), .has_others = true};
    bool is_all_evaluated = false;
    for (const MemberRule& other : cell.rules) {
      if (!other.is_assertion) continue;
      is_all_evaluated = is_all_evaluated || other.has_others;
      for (const auto& property : other.properties) rule.properties.emplace_back(property.first, kAnyValue);
      for (const auto& pattern : other.patterns) rule.patterns.emplace_back(pattern.first, kAnyValue);
      rule.doubtful = context.store().any_of({rule.doubtful, other.doubtful});
    }
    if (!is_all_evaluated) cell.rules.push_back(std::move(rule));
  }
  context.set_result(std::move(cells));
  return {};
}

}  // namespace kvasir::grammar::keyword
