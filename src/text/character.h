// One character of a text and runs of them: what the pre-tokenisers' patterns are made of.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/code_point.h"
#include "text/char_class.h"

namespace kvasir::text {

// One character of a text, or the end of it.
struct Character {
  char32_t code_point = 0;
  std::size_t size_bytes = 0;  // 0 at the end
  CharClass char_class = CharClass::kOther;

  bool is(CharClass wanted) const { return size_bytes > 0 && char_class == wanted; }
  bool is_letter() const { return is(CharClass::kLetter); }
  bool is_number() const { return is(CharClass::kNumber); }
  bool is_line_break() const {
    return is(CharClass::kWhitespace) && (code_point == '\r' || code_point == '\n');
  }
  // [^\s\p{L}\p{N}]
  bool is_symbol() const {
    return size_bytes > 0 && (char_class == CharClass::kOther || char_class == CharClass::kPunctuation);
  }
  CharCase letter_case() const { return size_bytes > 0 ? char_case(code_point) : CharCase::kNone; }
  bool is_mark() const { return is(CharClass::kOther) && letter_case() == CharCase::kMark; }
};

inline Character character_at(std::string_view text, std::size_t position) {
  if (position >= text.size()) return {};
  const auto [code_point, size_bytes] = code_point_at(text, position);
  return {code_point, size_bytes, char_class(code_point)};
}

// The end of the run of characters that satisfy the predicate, at most max_characters of them.
template <class Predicate>
std::size_t run_end(std::string_view text, std::size_t position, Predicate predicate,
                    std::size_t max_characters = std::string_view::npos) {
  for (; max_characters > 0; --max_characters) {
    const Character character = character_at(text, position);
    if (character.size_bytes == 0 || !predicate(character)) break;
    position += character.size_bytes;
  }
  return position;
}

inline std::size_t class_run_end(std::string_view text, std::size_t position, CharClass wanted) {
  return run_end(text, position, [wanted](const Character& c) { return c.is(wanted); });
}

}  // namespace kvasir::text
