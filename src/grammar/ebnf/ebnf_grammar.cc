#include "grammar/ebnf/ebnf_grammar.h"

#include "grammar/ebnf/ebnf_lowering.h"

namespace kvasir::grammar {

Result<RuleId> add_ebnf(GrammarBuilder& builder, TermStore& store, Derivatives& derivatives, std::string_view text,
                        const EbnfOptions& options) {
  KVASIR_TRY(const EbnfGrammar rules, parse_ebnf(text, options.dialect, options.root, options.tokens));
  return EbnfLowering(rules, builder, store, derivatives).lower();
}

Result<Grammar> grammar_from_ebnf(TermStore& store, std::string_view text, const EbnfOptions& options) {
  Derivatives derivatives(store);
  GrammarBuilder builder(store);
  KVASIR_TRY(const RuleId root, add_ebnf(builder, store, derivatives, text, options));
  Grammar grammar = builder.finish(root);
  if (store.is_exhausted()) return make_error(ErrorKind::kUnmet, "grammar: it makes too many states");
  return grammar;
}

}  // namespace kvasir::grammar
