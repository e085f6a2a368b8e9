#include <algorithm>
#include <utility>

#include "grammar/schema/keywords.h"

namespace kvasir::grammar::keyword {

// prefixItems and items, or a list as items and additionalItems, as drafts up to 7 have it.
Status read_items(KeywordContext& context, const JsonValue& keyword) {
  const JsonValue* prefix = context.find("prefixItems");
  const JsonValue* rest = context.find("items");
  if (rest != nullptr && rest->is_array()) {
    if (prefix != nullptr) return context.fail(*rest, "a list beside prefixItems");
    prefix = rest;
    rest = context.find("additionalItems");
  }
  if (prefix != nullptr && !prefix->is_array()) return context.fail(keyword, "is no list");
  ArrayCell cell;
  if (prefix != nullptr) {
    for (const auto& schema : prefix->children) cell.prefix.push_back(context.name_of(*schema));
  }
  if (rest != nullptr) {
    cell.rest = context.name_of(*rest);
    cell.has_rest = true;
  }
  return context.add_arrays(cell);
}

Status read_item_count(KeywordContext& context, const JsonValue& keyword) {
  ArrayCell cell;
  if (const JsonValue* value = context.find("minItems")) {
    KVASIR_TRY(cell.min_items, context.count_of(*value));
  }
  if (const JsonValue* value = context.find("maxItems")) {
    KVASIR_TRY(cell.max_items, context.count_of(*value));
  }
  if (cell.min_items > cell.max_items) return context.fail(keyword, "minItems is above maxItems");
  return context.add_arrays(cell);
}

Status read_unique_items(KeywordContext& context, const JsonValue& keyword) {
  if (!keyword.is_bool()) return context.fail(keyword, "is neither true nor false");
  return keyword.kind == JsonValue::Kind::kTrue ? context.add_arrays({.is_unique = true}) : Status();
}

Status read_contains(KeywordContext& context, const JsonValue& keyword) {
  Occurrence occurrence = {.value = context.name_of(keyword)};
  if (const JsonValue* value = context.find("minContains")) {
    KVASIR_TRY(occurrence.min, context.count_of(*value));
  }
  if (const JsonValue* value = context.find("maxContains")) {
    KVASIR_TRY(occurrence.max, context.count_of(*value));
  }
  if (occurrence.min > occurrence.max) return context.fail(keyword, "minContains is above maxContains");
  return context.add_arrays({.contains = {occurrence}});
}

// Elements that no schema beside it says anything about.
Status read_unevaluated_items(KeywordContext& context, const JsonValue& keyword) {
  if (context.is_complement()) {
    return context.fail(keyword, "the complement of unevaluatedItems is not supported", ErrorKind::kUnmet);
  }
  Cells cells = context.result();
  for (ArrayCell& cell : cells.arrays) {
    if (cell.has_rest) continue;
    if (!cell.contains.empty()) {
      return context.fail(keyword, "is not supported beside contains", ErrorKind::kUnmet);
    }
    cell.rest = context.name_of(keyword);
    cell.has_rest = true;
  }
  context.set_result(std::move(cells));
  return {};
}

}  // namespace kvasir::grammar::keyword
