// Escapes of string literals in templates.
#pragma once

#include <string>
#include <string_view>

#include "kvasir/result.h"

namespace kvasir::jinja {

// The text between the quotes, Python's escapes replaced; unknown ones stay as they are.
// Errors (kBadFile): a truncated or unsupported escape, a surrogate.
Result<std::string> unescape_string(std::string_view literal);

}  // namespace kvasir::jinja
