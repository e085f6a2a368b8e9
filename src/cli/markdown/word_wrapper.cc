#include "cli/markdown/word_wrapper.h"

#include <cstddef>
#include <utility>

#include "base/utf8.h"
#include "cli/markdown/display_width.h"

namespace kvasir::cli {
namespace {

constexpr std::string_view kZeroWidthJoiner = "\xE2\x80\x8D";

}  // namespace

void WordWrapper::begin_line(int columns, std::vector<StyledText> first, std::vector<StyledText> rest) {
  columns_ = columns;
  rest_ = std::move(rest);
  put_prefix(first);
}

void WordWrapper::put(std::string_view character, const TextStyle& style) {
  Character next{std::string(character), style, character_width(character)};
  if (character == " ") {
    end_word();
    spaces_.push_back(std::move(next));
    return;
  }
  if (!word_.empty() && next.width > 0 && word_.back().text != kZeroWidthJoiner) {
    int last_width = 0;
    for (std::size_t i = word_.size(); i > 0 && last_width == 0; --i) last_width = word_[i - 1].width;
    if (next.width == 2 || last_width == 2) end_word();
  }
  word_.push_back(std::move(next));
}

void WordWrapper::put(const StyledText& text) {
  std::string_view rest = text.text;
  while (!rest.empty()) {
    const auto length = static_cast<std::size_t>(utf8_prefix(rest).num_bytes);
    put(rest.substr(0, length), text.style);
    rest.remove_prefix(length);
  }
}

void WordWrapper::end_line() {
  end_word();
  spaces_.clear();
}

void WordWrapper::end_word() {
  if (word_.empty()) return;
  int width = 0;
  for (const Character& character : word_) width += character.width;
  const int num_spaces = static_cast<int>(spaces_.size());
  if (columns_ > 0 && column_ + num_spaces + width > columns_ && column_ > begin_column_) {
    break_line();
  } else {
    for (const Character& space : spaces_) put_character(space);
  }
  spaces_.clear();
  for (const Character& character : word_) {
    if (columns_ > 0 && column_ + character.width > columns_ && column_ > begin_column_) break_line();
    put_character(character);
  }
  word_.clear();
}

void WordWrapper::break_line() {
  sink_.new_line();
  put_prefix(rest_);
}

void WordWrapper::put_prefix(const std::vector<StyledText>& prefix) {
  column_ = 0;
  for (const StyledText& part : prefix) {
    sink_.put(part.text, part.style);
    column_ += display_width(part.text);
  }
  begin_column_ = column_;
}

void WordWrapper::put_character(const Character& character) {
  sink_.put(character.text, character.style);
  column_ += character.width;
}

}  // namespace kvasir::cli
