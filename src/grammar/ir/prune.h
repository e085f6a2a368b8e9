// Removes what no text of a grammar uses.
#pragma once

#include <vector>

#include "grammar/ir/grammar.h"

namespace kvasir::grammar {

// The grammar without edges that lead to no end, so that every place can reach one. Rules and nodes keep their
// numbers; those that the start does not reach have no edges. Without rules: the grammar has no text.
// Requires: every terminal is alive or kNothing.
Grammar pruned(Grammar grammar);

// By rule, whether it derives a text.
std::vector<bool> rules_with_text(const Grammar& grammar);

}  // namespace kvasir::grammar
