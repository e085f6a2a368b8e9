#include "grammar/schema/json_schema.h"

#include <fmt/format.h>

#include <string>

#include "base/printable.h"
#include "grammar/regex/derivatives.h"
#include "grammar/schema/empty_place.h"
#include "grammar/schema/evaluator.h"
#include "grammar/schema/json_value.h"
#include "grammar/schema/lowering.h"

namespace kvasir::grammar {

Result<SchemaGrammar> grammar_from_schema(TermStore& store, std::string_view schema, const SchemaOptions& options) {
  KVASIR_TRY(const auto root, read_json(schema));
  Derivatives derivatives(store);
  SchemaEvaluator evaluator(*root, store, derivatives);
  GrammarBuilder builder(store);
  SchemaLowering lowering(evaluator, builder, options);
  KVASIR_TRY(const RuleId start, lowering.lower_document(evaluator.name_of(*root)));
  if (store.is_exhausted()) return make_error(ErrorKind::kUnmet, "the schema makes too many states");
  SchemaGrammar made = {.grammar = builder.finish(start), .ignored = evaluator.notes().ignored};
  if (made.grammar.rules.empty()) {
    const SchemaNote reason = reason_of_emptiness(*root, store, options);
    if (!reason.pointer.empty()) {
      return make_error(ErrorKind::kUsage, fmt::format("'{}': {}", printable_line(reason.pointer), reason.reason));
    }
  }
  return made;
}

}  // namespace kvasir::grammar
