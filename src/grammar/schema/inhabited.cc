#include "grammar/schema/inhabited.h"

#include <algorithm>

#include "base/code_point.h"

namespace kvasir::grammar {
namespace {

bool has_value(SchemaEvaluator& evaluator, SchemaName name, int depth) {
  if (name == kAnyValue || depth == 0) return name != kNoValue;
  const Cells* cells = evaluator.cells_if_known(name);
  return cells == nullptr || is_inhabited(evaluator, *cells, depth - 1);
}

bool is_inhabited_object(SchemaEvaluator& evaluator, const ObjectCell& cell, int depth) {
  std::size_t num_properties = 0;
  for (const MemberRule& rule : cell.rules) num_properties += 1 + rule.properties.size();
  evaluator.algebra().spend(cell.required.size() * num_properties / CellAlgebra::kPartsOfPair / 4);
  for (const std::string& key : cell.required) {
    if (is_doubtful(evaluator, cell, key)) continue;
    const bool has = has_value(evaluator, member_value(evaluator, cell, key), depth);
    if (!has) return false;
  }
  return true;
}

bool is_inhabited_array(SchemaEvaluator& evaluator, const ArrayCell& cell, int depth) {
  for (std::uint32_t i = 0; i < std::min<std::size_t>(cell.min_items, cell.prefix.size() + 1); ++i) {
    const SchemaName element = i < cell.prefix.size() ? cell.prefix[i] : cell.rest;
    const bool has = has_value(evaluator, element, depth);
    if (!has) return false;
  }
  return true;
}

}  // namespace

SchemaName member_value(SchemaEvaluator& evaluator, const ObjectCell& cell, const std::string& key) {
  SchemaNames& names = evaluator.names();
  SchemaName value = kAnyValue;
  if (cell.has_names && !evaluator.has_text(cell.names, key)) return kNoValue;
  for (const SharedRule& shared : cell.rules) {
    const MemberRule& rule = shared;
    bool is_known = false;
    for (const SchemaName schema : shared.values_of(key)) {
      is_known = true;
      value = names.both(value, schema);
    }
    for (const auto& [pattern, schema] : rule.patterns) {
      if (!evaluator.has_text(pattern, key)) continue;
      is_known = true;
      value = names.both(value, schema);
    }
    if (!is_known) value = names.both(value, rule.others);
  }
  return value;
}

bool is_doubtful(SchemaEvaluator& evaluator, const ObjectCell& cell, const std::string& key) {
  return std::ranges::any_of(cell.rules, [&](const MemberRule& rule) {
    return rule.doubtful != kNothing && evaluator.has_text(rule.doubtful, key);
  });
}

bool is_inhabited(SchemaEvaluator& evaluator, const Cells& cells, int depth) {
  if (cells.is_narrowed) return true;
  if (cells.has_null || cells.has_true || cells.has_false || !cells.numbers.empty() || !cells.strings.empty()) {
    return true;
  }
  for (const ArrayCell& cell : cells.arrays) {
    const bool has = is_inhabited_array(evaluator, cell, depth);
    if (has) return true;
  }
  for (const ObjectCell& cell : cells.objects) {
    const bool has = is_inhabited_object(evaluator, cell, depth);
    if (has) return true;
  }
  return false;
}

}  // namespace kvasir::grammar
