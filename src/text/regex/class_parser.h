// Classes of characters in a pattern: [a-z&&[^b]], \p{Lu}, \s.
#pragma once

#include "kvasir/result.h"
#include "text/regex/code_point_set.h"
#include "text/regex/pattern_reader.h"

namespace kvasir::text::regex {

// Behind the '[' that opens a class.
Result<CodePointSet> parse_class(PatternReader& in, bool ignores_case);

// Behind a '\'. In a class \b is a backspace.
Result<CodePointSet> parse_escape(PatternReader& in, bool in_class);

}  // namespace kvasir::text::regex
