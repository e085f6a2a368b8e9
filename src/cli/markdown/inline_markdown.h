// The Markdown within a line: emphasis, code, links.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "cli/markdown/text_style.h"

namespace kvasir::cli {

struct InlineContext {
  TextStyle style;           // of plain text
  char before = ' ';         // the byte of the line before the text
  bool is_complete = false;  // the line ends with the text
  bool shows_code_marks = false;
};

struct InlineText {
  std::vector<StyledText> parts;
  std::size_t num_bytes = 0;  // of the source; the rest is not decided yet
};

// Reads as much of `text` as no further text can change. An element that does not end is plain text with its
// markers: at the end of the line, or once kMaxUndecidedBytes have come after its beginning. The rules that
// open and close emphasis are those of CommonMark (0.31, section 6.2) but for what suits models: a single *
// between letters or digits means itself, and so do backslashes before ( ) [ ] { }, which TeX has; ** may
// close behind punctuation within a word; a run is closed by one of its length, or by one that ends what is
// within it too, and never in part. A link becomes its text and then its address in parentheses.
InlineText parse_inline(std::string_view text, const InlineContext& context);

inline constexpr std::size_t kMaxUndecidedBytes = 1000;

// Whether `c` may begin or end an element: other bytes decide nothing by themselves.
bool is_inline_marker(char c);

}  // namespace kvasir::cli
