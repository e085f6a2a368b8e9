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
    cell.num_evaluated = static_cast<std::uint32_t>(cell.prefix.size());
  }
  if (rest != nullptr) {
    cell.rest = context.name_of(*rest);
    cell.num_evaluated = kNoLimit;
  }
  return context.add_arrays(cell);
}

Status read_item_count(KeywordContext& context, const JsonValue&) {
  ArrayCell cell;
  if (const JsonValue* value = context.find("minItems")) {
    KVASIR_TRY(cell.min_items, context.count_of(*value));
  }
  if (const JsonValue* value = context.find("maxItems")) {
    KVASIR_TRY(cell.max_items, context.count_of(*value));
  }
  if (cell.min_items > cell.max_items) {
    Cells no_arrays = context.algebra().any_value();
    no_arrays.arrays.clear();
    return context.add(no_arrays);
  }
  return context.add_arrays(cell);
}

Status read_unique_items(KeywordContext& context, const JsonValue& keyword) {
  if (!keyword.is_bool()) return context.fail(keyword, "is neither true nor false");
  if (keyword.kind == JsonValue::Kind::kFalse) return {};
  context.note_narrowed(keyword, "items have one text each; objects differ in a member that all of them must have; lists, and other objects, are no items");
  return context.add_arrays({.is_unique = true});
}

Status read_contains(KeywordContext& context, const JsonValue& keyword) {
  Occurrence occurrence = {.value = context.name_of(keyword)};
  if (const JsonValue* value = context.find("minContains")) {
    KVASIR_TRY(occurrence.min, context.count_of(*value));
  }
  if (const JsonValue* value = context.find("maxContains")) {
    KVASIR_TRY(occurrence.max, context.count_of(*value));
  }
  if (occurrence.min > occurrence.max) {
    Cells no_arrays = context.algebra().any_value();
    no_arrays.arrays.clear();
    return context.add(no_arrays);
  }
  return context.add_arrays({.contains = {occurrence}});
}

// Elements that no schema beside it says anything about.
Status read_unevaluated_items(KeywordContext& context, const JsonValue& keyword) {
  if (context.is_complement()) {
    context.narrow(keyword, "a complement takes no list because of it");
    return {};
  }
  Cells cells = context.result();
  const SchemaName name = context.name_of(keyword);
  for (ArrayCell& cell : cells.arrays) {
    if (cell.num_evaluated == kNoLimit) continue;
    // Later drafts let elements pass that contains finds; here they have to fit like the others.
    if (!cell.contains.empty()) context.note_narrowed(keyword, "elements that contains finds have to fit as well");
    for (std::size_t i = cell.num_evaluated; i < cell.prefix.size(); ++i) {
      cell.prefix[i] = context.names().both(cell.prefix[i], name);
    }
    cell.prefix.resize(std::max<std::size_t>(cell.prefix.size(), cell.num_evaluated), cell.rest);
    cell.rest = context.names().both(cell.rest, name);
    cell.num_evaluated = kNoLimit;
    cells.is_narrowed = cells.is_narrowed || !cell.contains.empty();
  }
  context.set_result(std::move(cells));
  return {};
}

}  // namespace kvasir::grammar::keyword
