// The grammar of a JSON Schema.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "grammar/ir/grammar.h"
#include "grammar/regex/term_store.h"
#include "grammar/schema/schema_options.h"
#include "kvasir/result.h"

namespace kvasir::grammar {

struct SchemaGrammar {
  Grammar grammar;                 // without rules: nothing satisfies the schema, and no part of it is at fault
  std::set<std::string> ignored;   // pointers of formats that no draft defines, and of draft 3's `required`
};

// Texts of values that satisfy the schema; never others. Drafts 4 to 7 and 2020-12. Narrower than the schema: blanks
// (SchemaOptions), canonical escapes beside patterns and lists of values, no fraction in an integer, members in the
// order of the schema with unnamed ones behind ("$schema" may come first of all), items of uniqueItems as
// recorded_values() in lowering.h has them, and what number_texts() and format_texts() say.
// Errors: kUsage for what no schema may say, kUnmet for what is not supported; both name the JSON pointer.
Result<SchemaGrammar> grammar_from_schema(TermStore& store, std::string_view schema, const SchemaOptions& options = {});

}  // namespace kvasir::grammar
