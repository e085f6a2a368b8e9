// The grammar of answers that call tools.
#pragma once

#include <span>
#include <string_view>

#include "grammar/ir/grammar.h"
#include "grammar/regex/term_store.h"
#include "grammar/schema/schema_options.h"
#include "grammar/tags/mark_writer.h"
#include "kvasir/result.h"
#include "kvasir/tool_guide.h"

namespace kvasir::grammar {

// Terms that a grammar of tools may need: each argument's key is a few.
inline constexpr std::size_t kMaxToolTerms = 400'000;

// A text that is the answer where no call is.
struct AnswerText {
  bool is_free = true;           // any text; calls may follow it
  std::string_view schema = {};  // a value that satisfies this JSON Schema; empty: one of `texts`
  SchemaOptions options = {};    // of the schema
  TermId texts = kNothing;
};

// Answers in the form that the reader of the family's calls reads back, to the same names and arguments. Blanks between
// marks are at most two. A text that is not free holds no mark of a call. `tokens` are the model's control tokens; one that ends answers is not part of any text.
// Errors: kUsage and kUnmet as of grammar_from_schema(), and for a tool that the family cannot call, each of which names the
// tool; kUnmet for a text that is not free where calls need no mark.
Result<Grammar> grammar_of_tools(TermStore& store, const ToolGuide& guide, std::span<const ControlToken> tokens,
                                 const AnswerText& text = {});

}  // namespace kvasir::grammar
