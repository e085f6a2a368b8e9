// How many columns of a terminal a text takes.
#pragma once

#include <string_view>

namespace kvasir::cli {

// 0 (it joins the one before), 1 or 2, as wcwidth of the C library has it for UTF-8, whatever the process's
// locale. Requires: one whole character, no control.
int character_width(std::string_view character);

// The width of all characters of valid UTF-8 without controls.
int display_width(std::string_view text);

}  // namespace kvasir::cli
