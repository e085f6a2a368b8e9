// JSON as a grammar, for tests.
#pragma once

#include <memory>

#include "grammar/ir/grammar.h"
#include "grammar/regex/term_store.h"

namespace kvasir::grammar {

// Any value (RFC 8259) without blanks at its ends; up to two blanks or a line break with blanks between tokens.
Grammar json_grammar(TermStore& store);

}  // namespace kvasir::grammar
