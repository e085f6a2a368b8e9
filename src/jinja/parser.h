// Jinja's statement grammar: tokens to a template's body.
#pragma once

#include <string_view>

#include "jinja/ast.h"

namespace kvasir::jinja {

// Errors (kBadFile): "line N: ..." for syntax errors, unknown tags and nesting above kMaxParseDepth.
// Unknown filters and tests are errors only when a render reaches them, as in Jinja.
// Requires: source is well-formed UTF-8.
Result<Block> parse_template(std::string_view source);

}  // namespace kvasir::jinja
