// Literals, classes and escapes of a grammar's text.
#pragma once

#include <string>

#include "grammar/ebnf/ebnf_reader.h"
#include "grammar/ebnf/ebnf_syntax.h"

namespace kvasir::grammar {

// Behind the quote that opens a literal; goes on behind the one that ends it.
Result<std::string> read_ebnf_literal(EbnfReader& in, EbnfDialect dialect);
// Behind the '[' that opens a class; goes on behind its ']'.
Result<text::regex::CodePointSet> read_ebnf_class(EbnfReader& in, EbnfDialect dialect);

}  // namespace kvasir::grammar
