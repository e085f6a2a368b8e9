// Reads a grammar's text character by character, and says where a fault is.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "kvasir/result.h"

namespace kvasir::grammar {

// Thread safety: none. Requires: the text is well-formed UTF-8.
class EbnfReader {
 public:
  explicit EbnfReader(std::string_view text);

  bool at_end() const { return position_ == characters_.size(); }
  std::size_t position() const { return position_; }  // in characters
  void go_to(std::size_t position) { position_ = position; }
  // The next character, or one further on; NUL behind the end, which no text of a grammar has.
  char32_t peek(std::size_t distance = 0) const {
    return position_ + distance < characters_.size() ? characters_[position_ + distance] : U'\0';
  }
  // Requires: !at_end().
  char32_t next() { return characters_[position_++]; }
  // Goes on behind the text if it is next.
  bool take(std::u32string_view text);
  bool take(char32_t wanted) { return take(std::u32string_view(&wanted, 1)); }

  // Goes on behind blanks and comments; behind line ends too if `with_lines`.
  void skip_blanks(bool with_lines);
  // No character but blanks is before the position in its line.
  bool is_first_in_line(std::size_t position) const;

  // "grammar, line 2, column 5: ..."
  std::unexpected<Error> fail(std::string_view what) const { return fail_at(position_, what); }
  std::unexpected<Error> fail_at(std::size_t position, std::string_view what,
                                 ErrorKind kind = ErrorKind::kUsage) const;
  std::size_t line_of(std::size_t position) const;  // from 1

 private:
  std::u32string characters_;
  std::size_t position_ = 0;
};

}  // namespace kvasir::grammar
