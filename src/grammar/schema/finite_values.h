// Sets of JSON values that can be counted up.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "grammar/ir/grammar_builder.h"
#include "grammar/schema/evaluator.h"

namespace kvasir::grammar {

// The texts of each value of a set of null, true, false, numbers and strings. Empty: the set has more than `most`
// values, or others, or it cannot be read.
std::optional<std::vector<Terminal>> finite_values(SchemaEvaluator& evaluator, SchemaName name, std::size_t most);

}  // namespace kvasir::grammar
