// Terminals whose texts are recorded, where tokens meet them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "grammar/atlas.h"
#include "grammar/regex/text_mark.h"
#include "kvasir/ids.h"

namespace kvasir::grammar {

// A terminal that begins, or goes on, with what is left of some tokens. Thread safety: as of a value.
struct RecordedTerminal {
  std::shared_ptr<const Remainders> remainders;
  TextMark mark;
  std::uint32_t num_closed = 0;  // scopes that these tokens close first
  bool has_begun = false;        // before the token
};

// The recorded terminals of a place in a grammar. Thread safety: as of a value.
struct RecordedTerminals {
  std::vector<RecordedTerminal> terminals;
  std::vector<TokenId> doubtful;  // tokens with two texts of one scope, which may be alike

  bool empty() const { return terminals.empty() && doubtful.empty(); }
};

}  // namespace kvasir::grammar
