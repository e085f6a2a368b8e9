#include <algorithm>
#include <utility>

#include "grammar/schema/cell_algebra.h"

namespace kvasir::grammar {

// Lists with two equal elements are left out: no cell says that two are equal.
std::vector<ArrayCell> CellAlgebra::complement(const ArrayCell& cell) {
  std::vector<ArrayCell> cells;
  if (cell.min_items > 0) cells.push_back({.max_items = cell.min_items - 1});
  if (cell.max_items != kNoLimit) cells.push_back({.min_items = cell.max_items + 1});
  for (std::size_t i = 0; i < cell.prefix.size(); ++i) {
    for (const SchemaName other : names_.complement(cell.prefix[i])) {
      ArrayCell differs = {.prefix = std::vector(i, kAnyValue), .min_items = static_cast<std::uint32_t>(i) + 1};
      differs.prefix.push_back(other);
      cells.push_back(std::move(differs));
    }
  }
  if (cell.rest == kNoValue) {
    cells.push_back({.min_items = static_cast<std::uint32_t>(cell.prefix.size()) + 1});
  } else if (cell.rest != kAnyValue) {
    const auto from = static_cast<std::uint32_t>(cell.prefix.size());
    for (const SchemaName other : names_.complement(cell.rest)) {
      cells.push_back({.contains = {{.value = other, .from = from}}});
    }
  }
  for (const Occurrence& contains : cell.contains) {
    const auto counted = [&](std::uint32_t min, std::uint32_t max) {
      cells.push_back({.contains = {{.value = contains.value, .from = contains.from, .min = min, .max = max}}});
    };
    if (contains.min > 0) counted(0, contains.min - 1);
    if (contains.max != kNoLimit) counted(contains.max + 1, kNoLimit);
  }
  return cells;
}

// Some member breaks the rule.
void CellAlgebra::add_complement(const MemberRule& rule, std::vector<ObjectCell>& cells, bool& is_narrowed) {
  std::vector<std::string_view> keys;
  std::vector<TermId> known;
  for (const auto& [key, value] : rule.properties) {
    keys.push_back(key);
    for (const SchemaName other : names_.complement(value)) {
      cells.push_back({.rules = {MemberRule{.properties = {{key, other}}, .patterns = {}, .is_assertion = false}},
                       .required = {key}});
    }
  }
  for (const auto& [pattern, value] : rule.patterns) {
    known.push_back(pattern);
    for (const SchemaName other : names_.complement(value)) {
      cells.push_back({.contains = {{.value = other, .keys = pattern}}});
    }
  }
  is_narrowed = is_narrowed || rule.doubtful != kNothing;
  if (rule.others == kAnyValue) return;
  known.push_back(rule.doubtful);
  known.push_back(store_.literals(std::move(keys)));
  const TermId others = store_.complement(store_.any_of(std::move(known)));
  for (const SchemaName other : names_.complement(rule.others)) {
    cells.push_back({.contains = {{.value = other, .keys = others}}});
  }
}

std::vector<ObjectCell> CellAlgebra::complement(const ObjectCell& cell, bool& is_narrowed) {
  std::vector<ObjectCell> cells;
  if (cell.min_members > 0) cells.push_back({.max_members = cell.min_members - 1});
  if (cell.max_members != kNoLimit) cells.push_back({.min_members = cell.max_members + 1});
  for (const std::string& key : cell.required) cells.push_back({.absent = {key}});
  for (const std::string& key : cell.absent) cells.push_back({.required = {key}});
  if (cell.has_names) cells.push_back({.contains = {{.keys = store_.complement(cell.names)}}});
  for (const MemberRule& rule : cell.rules) add_complement(rule, cells, is_narrowed);
  for (const Occurrence& contains : cell.contains) {
    ObjectCell without;
    for (const SchemaName other : names_.complement(contains.value)) {
      if (!without.rules.empty()) {  // a member may be in one set, the next in another
        is_narrowed = true;
        break;
      }
      without.rules.push_back(MemberRule{.properties = {}, .patterns = {{contains.keys, other}}, .is_assertion = false});
    }
    if (without.rules.empty()) {
      without.rules.push_back(MemberRule{.properties = {}, .patterns = {{contains.keys, kNoValue}}, .is_assertion = false});
    }
    cells.push_back(std::move(without));
  }
  return cells;
}

Result<Cells> CellAlgebra::complement(const Cells& cells) {
  Cells result = any_value();
  result.has_null = !cells.has_null;
  result.has_true = !cells.has_true;
  result.has_false = !cells.has_false;
  // Leaves what is outside of every cell of a type.
  const auto leave = [&](auto Cells::*of_type, auto outside_of) -> Status {
    for (const auto& cell : cells.*of_type) {
      Cells so_far, outside;
      so_far.*of_type = std::move(result.*of_type);
      KVASIR_TRY(outside.*of_type, outside_of(cell));
      KVASIR_TRY(Cells left, both(so_far, outside));
      result.*of_type = std::move(left.*of_type);
    }
    return {};
  };
  KVASIR_CHECKED(leave(&Cells::numbers, [](const NumberSet& set) -> Result<std::vector<NumberSet>> {
    return grammar::complement(set);
  }));
  KVASIR_CHECKED(leave(&Cells::strings, [&](const StringCell& cell) -> Result<std::vector<StringCell>> {
    return std::vector{StringCell{.texts = store_.complement(cell.perhaps),
                                  .perhaps = store_.complement(cell.texts),
                                  .is_free = false}};
  }));
  KVASIR_CHECKED(leave(&Cells::arrays, [&](const ArrayCell& cell) -> Result<std::vector<ArrayCell>> {
    result.is_narrowed = result.is_narrowed || cell.is_unique;
    return complement(cell);
  }));
  KVASIR_CHECKED(leave(&Cells::objects, [&](const ObjectCell& cell) -> Result<std::vector<ObjectCell>> {
    return complement(cell, result.is_narrowed);
  }));
  return result;
}

}  // namespace kvasir::grammar
