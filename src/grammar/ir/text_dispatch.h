// Text of any kind in which marks lead to other parts of a grammar.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "grammar/ir/grammar_builder.h"
#include "grammar/regex/free_text.h"

namespace kvasir::grammar {

struct TextDispatch {
  struct Trigger {
    std::string mark;
    Part behind;  // what follows the mark
  };
  std::vector<Trigger> triggers;
  std::vector<std::string> excludes;  // not in the text
  std::vector<std::string> ends;      // the text ends with one of these; none: anywhere
  bool loops = true;                  // text again behind a trigger's part; else the end
  bool is_nonempty = false;           // without the empty text
};

// Requires: no text is empty, all are well-formed UTF-8.
Part text_dispatch(GrammarBuilder& builder, TermStore& store, Derivatives& derivatives, const TextDispatch& dispatch);

}  // namespace kvasir::grammar
