// The grammar of a guide.
#pragma once

#include <string>
#include <vector>

#include "grammar/ir/grammar.h"
#include "grammar/regex/term_store.h"
#include "text/tokenizer.h"
#include "kvasir/guide.h"
#include "kvasir/result.h"

namespace kvasir {

struct GuideGrammar {
  grammar::Grammar grammar;
  std::vector<std::string> ignored;  // as grammar::ignored_keywords() has it
};

// Errors: kUsage for a guide that is wrong, kUnmet for one that is not supported or beyond a limit. Neither names the
// guide's field.
Result<GuideGrammar> grammar_of(const Guide& guide, const text::Tokenizer& tokenizer, grammar::TermStore& store);

}  // namespace kvasir
