// The classes of characters in a pattern: [a-z], \d, \p{Lu}, \u00e9.
#pragma once

#include "grammar/regex/pattern_syntax.h"
#include "text/regex/pattern_reader.h"

namespace kvasir::grammar {

// Behind the '[' that opens a class.
Result<text::regex::CodePointSet> parse_pattern_class(text::regex::PatternReader& in, ClassReading reading);
// Behind a '\'.
Result<text::regex::CodePointSet> parse_pattern_escape(text::regex::PatternReader& in, ClassReading reading, bool in_class);
// The dot.
text::regex::CodePointSet any_but_line_ends(ClassReading reading);

}  // namespace kvasir::grammar
