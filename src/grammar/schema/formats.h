// The formats of strings that JSON Schema defines.
#pragma once

#include <optional>
#include <string_view>

#include "grammar/regex/term_store.h"
#include "kvasir/result.h"

namespace kvasir::grammar {

// Validators differ in what they take.
struct FormatTexts {
  TermId surely = kNothing;   // all of them; internationalised names are in ASCII, a regex is literal text
  TermId perhaps = kNothing;  // any of them
};

// Empty for a name that no draft defines, which is an annotation.
Result<std::optional<FormatTexts>> format_texts(TermStore& store, std::string_view name);

}  // namespace kvasir::grammar
