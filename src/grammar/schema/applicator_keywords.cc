#include <utility>
#include <vector>

#include "grammar/schema/inhabited.h"
#include "grammar/schema/keywords.h"

namespace kvasir::grammar::keyword {

Status read_reference(KeywordContext& context, const JsonValue& keyword) {
  KVASIR_TRY(const JsonValue* target, context.evaluator().references().resolve(keyword));
  KVASIR_TRY(const Cells* cells, context.cells_of(*target, context.is_complement()));
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
  Cells cells = context.is_complement() ? context.algebra().any_value() : Cells();
  for (const auto& schema : keyword.children) {
    KVASIR_TRY(const Cells* one, context.cells_of(*schema, context.is_complement()));
    if (context.is_complement()) {
      KVASIR_TRY(cells, context.algebra().both(cells, *one));
    } else {
      cells = CellAlgebra::either(std::move(cells), *one);
    }
  }
  return context.add_as_is(cells);
}

// Each schema without those that share a value with it.
Status read_one_of(KeywordContext& context, const JsonValue& keyword) {
  if (!keyword.is_array()) return context.fail(keyword, "is no list");
  if (context.is_complement()) {
    return context.fail(keyword, "the complement of oneOf is not supported", ErrorKind::kUnmet);
  }
  std::vector<const Cells*> schemas;
  for (const auto& schema : keyword.children) {
    KVASIR_TRY(const Cells* cells, context.cells_of(*schema, /*is_complement=*/false));
    schemas.push_back(cells);
  }
  Cells result;
  for (std::size_t i = 0; i < schemas.size(); ++i) {
    KVASIR_TRY(Cells alone, context.algebra().both(context.result(), *schemas[i]));
    for (std::size_t j = 0; j < schemas.size(); ++j) {
      if (i == j) continue;
      KVASIR_TRY(const Cells shared, context.algebra().both(alone, *schemas[j]));
      KVASIR_TRY(const bool is_shared, is_inhabited(context.evaluator(), shared));
      if (!is_shared) continue;
      KVASIR_TRY(const Cells* without, context.cells_of(*keyword.children[j], /*is_complement=*/true));
      KVASIR_TRY(alone, context.algebra().both(alone, *without));
    }
    result = CellAlgebra::either(std::move(result), alone);
  }
  context.set_result(std::move(result));
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
