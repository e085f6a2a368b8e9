// Calls at the end of a rule.
#pragma once

#include "grammar/ir/grammar.h"

namespace kvasir::grammar {

// Sets Edge::is_tail where the called rule may stand for the one that calls it: where these calls lead round, so that
// right recursion does not grow, and where a rule is nothing but the call. Elsewhere each caller would begin the called
// rule anew. Nodes that the start does not reach are left as they are.
void mark_tail_calls(Grammar& grammar);

}  // namespace kvasir::grammar
