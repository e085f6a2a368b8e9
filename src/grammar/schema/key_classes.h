// The members of an object that no property names, sorted by what their keys match.
#pragma once

#include <string>
#include <vector>

#include "grammar/schema/cells.h"
#include "grammar/schema/evaluator.h"

namespace kvasir::grammar {

struct KeyClass {
  TermId keys = kNothing;
  SchemaName value = kAnyValue;
  bool may_run_out = true;  // behind some beginning there are few keys
};

// The schema names members and does not say whether there may be others.
bool is_open_by_default(const ObjectCell& cell);

// Classes that share no key. Keys in `fixed` are in none of them. closes_objects: as SchemaOptions has it.
// kUnmet: more than kMaxKeyPatterns patterns.
inline constexpr std::size_t kMaxKeyPatterns = 8;
Result<std::vector<KeyClass>> key_classes(SchemaEvaluator& evaluator, const ObjectCell& cell,
                                          const std::vector<std::string>& fixed, bool closes_objects);

}  // namespace kvasir::grammar
