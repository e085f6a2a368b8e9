// Where a schema is at fault that nothing satisfies.
#pragma once

#include "grammar/regex/term_store.h"
#include "grammar/schema/json_value.h"
#include "grammar/schema/schema_notes.h"
#include "grammar/schema/schema_options.h"

namespace kvasir::grammar {

// The innermost schema that each value has to satisfy and that no value does: a required member, an element that must
// be there, a part of allOf, the target of a $ref. A keyword of it that is narrowed goes before. The pointer is empty
// where no such part is at fault alone.
// Requires: nothing satisfies the root.
SchemaNote reason_of_emptiness(const JsonValue& root, TermStore& store, const SchemaOptions& options);

}  // namespace kvasir::grammar
