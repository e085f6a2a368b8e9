// Whether a set has a value, as far as a short look tells.
#pragma once

#include "grammar/schema/evaluator.h"

namespace kvasir::grammar {

// False: surely not. True: perhaps. Looks at required members and elements, `depth` levels down; schemas that cannot be read may
// have a value.
bool is_inhabited(SchemaEvaluator& evaluator, const Cells& cells, int depth = 3);

// What a member of this key may be under all rules of an object, where no rule is doubtful about it.
SchemaName member_value(SchemaEvaluator& evaluator, const ObjectCell& cell, const std::string& key);

// Whether validators differ about the patterns that the key matches.
bool is_doubtful(SchemaEvaluator& evaluator, const ObjectCell& cell, const std::string& key);

}  // namespace kvasir::grammar
