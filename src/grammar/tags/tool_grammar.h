// The grammar of answers that call tools.
#pragma once

#include <span>

#include "grammar/ir/grammar.h"
#include "grammar/regex/term_store.h"
#include "grammar/tags/mark_writer.h"
#include "kvasir/result.h"
#include "kvasir/tool_guide.h"

namespace kvasir::grammar {

// Terms that a grammar of tools may need: each argument's key is a few.
inline constexpr std::size_t kMaxToolTerms = 400'000;

// Answers in the form that the reader of the family's calls reads back, to the same names and arguments. Blanks between
// marks are at most two. `tokens` are the model's control tokens; one that ends answers is not part of any text.
// Errors: kUsage and kUnmet as of grammar_from_schema(), and for a tool that the family cannot call; each names the
// tool.
Result<Grammar> grammar_of_tools(TermStore& store, const ToolGuide& guide, std::span<const ControlToken> tokens);

}  // namespace kvasir::grammar
