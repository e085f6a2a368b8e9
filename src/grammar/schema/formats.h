// The formats of strings that JSON Schema defines.
#pragma once

#include <optional>
#include <string_view>

#include "grammar/regex/term_store.h"
#include "kvasir/result.h"

namespace kvasir::grammar {

// The texts of a format, or fewer where its own definition leaves doubts: internationalised names are in ASCII, and a regex is
// literal text. Empty for a name that no draft defines, which is an annotation.
Result<std::optional<TermId>> format_language(TermStore& store, std::string_view name);

}  // namespace kvasir::grammar
