#include <utility>
#include <vector>

#include "grammar/schema/cell_union.h"
#include "grammar/schema/inhabited.h"
#include "grammar/schema/keywords.h"

namespace kvasir::grammar::keyword {

Status read_reference(KeywordContext& context, const JsonValue& keyword) {
  const auto target = context.evaluator().references().resolve(keyword);
  if (!target) return context.fail(keyword, target.error().message, target.error().kind);
  KVASIR_TRY(const Cells* cells, context.cells_of(**target, context.is_complement()));
  return context.add_as_is(*cells);
}

Status read_all_of(KeywordContext& context, const JsonValue& keyword) {
  if (!keyword.is_array()) return context.fail(keyword, "is no list");
  for (const auto& schema : keyword.children) {
    KVASIR_TRY(const Cells* cells, context.cells_of(*schema, context.is_complement()));
    KVASIR_CHECKED(context.add_as_is(*cells));
  }
  return {};
}

Status read_not(KeywordContext& context, const JsonValue& keyword) {
  KVASIR_TRY(const Cells* cells, context.cells_of(keyword, !context.is_complement()));
  return context.add_as_is(*cells);
}

Status read_any_of(KeywordContext& context, const JsonValue& keyword) {
  if (!keyword.is_array()) return context.fail(keyword, "is no list");
  if (context.is_complement()) {
    Cells none = context.algebra().any_value();
    for (const auto& schema : keyword.children) {
      KVASIR_TRY(const Cells* one, context.cells_of(*schema, /*is_complement=*/true));
      KVASIR_TRY(none, context.algebra().both(none, *one));
    }
    return context.add_as_is(none);
  }
  CellUnion any;
  for (const auto& schema : keyword.children) {
    KVASIR_TRY(const Cells* one, context.cells_of(*schema, /*is_complement=*/false));
    any.add(*one);
  }
  return context.add_as_is(any.cells());
}

namespace {

// Values that are in none of the schemas, or in two of them.
Status read_complement_of_one_of(KeywordContext& context, const JsonValue& keyword) {
  Cells none = context.algebra().any_value();
  for (const auto& schema : keyword.children) {
    KVASIR_TRY(const Cells* outside, context.cells_of(*schema, /*is_complement=*/true));
    KVASIR_TRY(none, context.algebra().both(none, *outside));
  }
  KVASIR_CHECKED(context.add_as_is(none));
  for (std::size_t i = 0; i < keyword.children.size(); ++i) {
    KVASIR_TRY(const Cells* first, context.cells_of(*keyword.children[i], /*is_complement=*/false));
    for (std::size_t j = i + 1; j < keyword.children.size(); ++j) {
      KVASIR_TRY(const Cells* second, context.cells_of(*keyword.children[j], /*is_complement=*/false));
      KVASIR_TRY(const Cells shared, context.algebra().both(*first, *second));
      if (is_inhabited(context.evaluator(), shared)) KVASIR_CHECKED(context.add_as_is(shared));
    }
  }
  return {};
}

// The cells of lists and objects one by one, and all others together.
std::vector<Cells> parts_of(const Cells& cells) {
  std::vector<Cells> parts;
  for (const ArrayCell& cell : cells.arrays) parts.push_back({.arrays = {cell}});
  for (const ObjectCell& cell : cells.objects) parts.push_back({.objects = {cell}});
  parts.push_back(cells);
  parts.back().is_narrowed = false;  // values that are missing here are shared with nobody
  parts.back().arrays.clear();
  parts.back().objects.clear();
  return parts;
}

// The values of a schema that no other one has.
Result<Cells> alone_in(KeywordContext& context, const JsonValue& keyword, std::size_t place) {
  KVASIR_TRY(const Cells* own, context.cells_of(*keyword.children[place], /*is_complement=*/false));
  KVASIR_TRY(Cells alone, context.algebra().both(context.result(), *own));
  const bool is_narrowed = alone.is_narrowed;
  for (std::size_t j = 0; j < keyword.children.size(); ++j) {
    if (j == place) continue;
    KVASIR_TRY(const Cells* other, context.cells_of(*keyword.children[j], /*is_complement=*/false));
    CellUnion left;
    for (Cells& part : parts_of(alone)) {
      KVASIR_TRY(const Cells shared, context.algebra().both(part, *other));
      if (is_inhabited(context.evaluator(), shared)) {
        KVASIR_TRY(const Cells* without, context.cells_of(*keyword.children[j], /*is_complement=*/true));
        KVASIR_TRY(part, context.algebra().both(part, *without));
      }
      left.add(std::move(part));
    }
    alone = left.take();
  }
  alone.is_narrowed = alone.is_narrowed || is_narrowed;
  return alone;
}

}  // namespace

Status read_one_of(KeywordContext& context, const JsonValue& keyword) {
  if (!keyword.is_array()) return context.fail(keyword, "is no list");
  if (context.is_complement()) return read_complement_of_one_of(context, keyword);
  CellUnion result;
  for (std::size_t i = 0; i < keyword.children.size(); ++i) {
    KVASIR_TRY(Cells alone, alone_in(context, keyword, i));
    result.add(std::move(alone));
  }
  context.set_result(result.take());
  return {};
}

// (if and then) or (not if and else)
Status read_if(KeywordContext& context, const JsonValue& keyword) {
  const JsonValue* then = context.find("then");
  const JsonValue* otherwise = context.find("else");
  if (then == nullptr && otherwise == nullptr) return {};
  const auto branch = [&](bool holds, const JsonValue* schema) -> SchemaName {
    if (schema == nullptr && context.is_complement()) return kNoValue;
    std::vector<SchemaLiteral> literals = {{.schema = &keyword, .is_complement = !holds}};
    if (schema != nullptr) literals.push_back({.schema = schema, .is_complement = context.is_complement()});
    return context.names().name_of(std::move(literals));
  };
  KVASIR_TRY(const Cells* with, context.evaluator().cells(branch(true, then)));
  KVASIR_TRY(const Cells* without, context.evaluator().cells(branch(false, otherwise)));
  return context.add_as_is(CellAlgebra::either(*with, *without));
}

}  // namespace kvasir::grammar::keyword
