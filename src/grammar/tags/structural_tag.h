// The grammar of a structural tag: text with parts between marks, as XGrammar and vLLM describe it.
#pragma once

#include <string_view>

#include "grammar/ir/grammar.h"
#include "grammar/regex/term_store.h"
#include "grammar/schema/schema_options.h"
#include "grammar/token_names.h"
#include "kvasir/result.h"

namespace kvasir::grammar {

struct StructuralTagOptions {
  SchemaOptions schema = {};
  TokenNames tokens = {};
};

// json: {"type": "structural_tag", "format": {...}}, a format object alone, or the older {"structures": [{"begin",
// "schema", "end"}], "triggers": [...]}.
//
// Formats: const_string, json_schema, grammar (XGrammar's notation), regex, any_text, sequence, or, optional, star,
// plus, repeat, tag, triggered_tags, tags_with_separator, dispatch, token, exclude_token, any_tokens. The end of a tag is
// in none of the free text at the end of its content, and the first one ends it.
//
// Errors: kUsage for what no structural tag may say, kUnmet for what is not supported; both name the JSON pointer.
Result<Grammar> grammar_from_structural_tag(TermStore& store, std::string_view json,
                                            const StructuralTagOptions& options = {});

}  // namespace kvasir::grammar
