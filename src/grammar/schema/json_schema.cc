#include "grammar/schema/json_schema.h"

#include "grammar/regex/derivatives.h"
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
  return SchemaGrammar{.grammar = builder.finish(start), .ignored = evaluator.notes().ignored};
}

}  // namespace kvasir::grammar
