// Colours for a block of code, line by line.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "cli/markdown/text_style.h"

namespace kvasir::cli {

struct CodeLanguage;

// Comments, strings, numbers and words that the language reserves; no grammar. Text of a language that it
// does not know comes without colours. The pieces of a line together are the line.
//
// Thread safety: none; remembers comments and strings that go on in the next line.
class CodeHighlighter {
 public:
  // `name` as behind a fence: "python", "c++", "sh"; upper and lower case are one.
  explicit CodeHighlighter(std::string_view name);

  // Requires: no newline in `line`.
  std::vector<StyledText> highlight(std::string_view line);

 private:
  std::size_t read_piece(std::string_view line, std::size_t at, TextStyle& style);

  const CodeLanguage* language_;  // null: not known
  std::string_view open_end_;     // the end of the comment or string that goes on; empty: none
  TextStyle open_style_;
};

}  // namespace kvasir::cli
