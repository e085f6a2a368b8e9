// The cases of a union of objects that add texts to it.
#pragma once

#include <vector>

#include "grammar/schema/evaluator.h"

namespace kvasir::grammar {

// Some of the cells, in their order, perhaps with fewer conditions: what is left out has no value, or its texts are all among another one's.
// closes_objects: as SchemaOptions has it. Complements multiply cases, and most of those are left out here.
std::vector<ObjectCell> needed_objects(SchemaEvaluator& evaluator, std::vector<ObjectCell> cells,
                                       bool closes_objects);

}  // namespace kvasir::grammar
