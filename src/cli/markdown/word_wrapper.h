// Breaks lines between words at the width of a window.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/markdown/styled_output.h"
#include "cli/markdown/text_style.h"

namespace kvasir::cli {

// A word is handed on once the character behind it has come, so what is on the screen stays where it is.
// Between characters of two columns a line may break too (there are no spaces in Chinese); a word that is
// longer than a line is cut. Spaces at a break are left out.
//
// Thread safety: none.
class WordWrapper {
 public:
  // `sink` outlives the wrapper.
  explicit WordWrapper(LineSink& sink) : sink_(sink) {}

  // `first` begins the line, `rest` each further one that it becomes. `columns` below 1: no wrapping.
  void begin_line(int columns, std::vector<StyledText> first, std::vector<StyledText> rest);
  // Requires: between begin_line and end_line; one character, no control.
  void put(std::string_view character, const TextStyle& style);
  void put(const StyledText& text);
  // Without a line break: a caller that wants one asks the sink.
  void end_line();

 private:
  struct Character {
    std::string text;
    TextStyle style;
    int width;
  };

  void end_word();
  void break_line();
  void put_prefix(const std::vector<StyledText>& prefix);
  void put_character(const Character& character);

  LineSink& sink_;
  int columns_ = 0;
  std::vector<StyledText> rest_;
  int column_ = 0;        // where the next character goes, spaces_ left out
  int begin_column_ = 0;  // behind the prefix
  std::vector<Character> word_;
  std::vector<Character> spaces_;  // before the word
};

}  // namespace kvasir::cli
