// How many columns of a terminal a text takes.
#pragma once

#include <string_view>
#include <vector>

#include "cli/markdown/text_style.h"

namespace kvasir::cli {

// 0 (it joins the one before), 1 or 2, as wcwidth of the C library has it for UTF-8, whatever the process's
// locale. Requires: one whole character, no control.
int character_width(std::string_view character);

// The width of all characters of valid UTF-8 without controls.
int display_width(std::string_view text);
int display_width(const std::vector<StyledText>& parts);

// The text without the spaces around it.
std::string_view trim_spaces(std::string_view text);

}  // namespace kvasir::cli
