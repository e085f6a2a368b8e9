// The language of a regular expression.
#pragma once

#include <string_view>

#include "grammar/regex/pattern_syntax.h"
#include "grammar/regex/term_store.h"

namespace kvasir::grammar {

// How a text fits a pattern.
enum class PatternFit : std::uint8_t {
  kFound,  // somewhere in the text, as JSON Schema has it; ^ and $ are the text's ends
  kWhole,  // the whole text, as a `regex` guide has it
};

// The texts that fit. kUsage: parse_pattern(), a look-ahead inside of a repetition, or counted rounds that
// may be an anchor alone.
Result<TermId> pattern_language(TermStore& store, std::string_view pattern, PatternFit fit,
                                ClassReading reading = ClassReading::kNarrow);

}  // namespace kvasir::grammar
