// The grammar of a text in extended Backus-Naur form.
#pragma once

#include <string_view>

#include "grammar/ebnf/ebnf_syntax.h"
#include "grammar/ir/grammar_builder.h"
#include "grammar/regex/derivatives.h"
#include "grammar/token_names.h"
#include "kvasir/result.h"

namespace kvasir::grammar {

struct EbnfOptions {
  EbnfDialect dialect = EbnfDialect::kGbnf;
  std::string_view root = "root";  // the rule of the whole text
  TokenNames tokens = {};
};

// Exactly the texts that the rules derive: characters are Unicode's, recursion may be of any kind, and an ambiguous
// grammar is as good as another. Errors: parse_ebnf()'s, and kUnmet for more states or parts than a grammar may have.
Result<Grammar> grammar_from_ebnf(TermStore& store, std::string_view text, const EbnfOptions& options = {});

// The same as a rule of a larger grammar.
Result<RuleId> add_ebnf(GrammarBuilder& builder, TermStore& store, Derivatives& derivatives, std::string_view text,
                        const EbnfOptions& options);

}  // namespace kvasir::grammar
