// The text of a line of Markdown, put on the screen as it becomes certain.
#pragma once

#include <string>
#include <string_view>

#include "cli/markdown/text_style.h"
#include "cli/markdown/word_wrapper.h"

namespace kvasir::cli {

// Between begin() and end() characters go to the wrapper; those of an element that is not decided yet are
// held back (parse_inline).
//
// Thread safety: none.
class InlineStream {
 public:
  // `wrapper` outlives the stream and has begun its line when begin() is called.
  InlineStream(WordWrapper& wrapper, bool shows_code_marks)
      : wrapper_(wrapper), shows_code_marks_(shows_code_marks) {}

  void begin(const TextStyle& style);
  // A whole character, no control.
  void put(std::string_view character);
  void end();

 private:
  void take_held(bool is_complete);

  WordWrapper& wrapper_;
  const bool shows_code_marks_;
  TextStyle style_;
  std::string held_;
  char before_ = ' ';  // the byte before held_
};

}  // namespace kvasir::cli
