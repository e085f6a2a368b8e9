// The kind of a line of Markdown, from its beginning.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kvasir::cli {

struct LineStart {
  enum class Kind : std::uint8_t {
    kUndecided,  // more of the line is needed
    kBlank,
    kText,
    kHeading,
    kBullet,    // an item of a list without numbers
    kNumber,    // of one with numbers
    kQuote,     // behind its marker another kind of line begins
    kRule,      // a horizontal one
    kFence,     // of code; only once the line is complete
    kTableRow,  // only once the line is complete
  };
  Kind kind = Kind::kUndecided;
  std::size_t indent = 0;     // spaces before it
  std::size_t num_bytes = 0;  // of indent, marker and the spaces behind it
  int level = 0;              // of a heading, from 1
};

// `text` is the line so far, without its newline; `is_complete`: all of it. Requires: no tabs. A decision
// stays, whatever follows.
LineStart read_line_start(std::string_view text, bool is_complete);

}  // namespace kvasir::cli
