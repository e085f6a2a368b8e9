// Classes of characters that the parts of a grammar usually tell apart.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/code_point.h"
#include "base/utf8.h"

namespace kvasir::grammar {

// A set of classes: each sign of ASCII's punctuation, blanks one by one, digits and letters in a few groups, and all
// characters beyond ASCII.
using CharacterClasses = std::uint64_t;

inline constexpr CharacterClasses kBeyondAscii = CharacterClasses{1} << 62;
// No class of characters: bytes that are none.
inline constexpr CharacterClasses kBrokenCharacter = CharacterClasses{1} << 63;

constexpr CharacterClasses character_class(char32_t code_point) {
  constexpr std::u32string_view kAlone = U" \t\n\r!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~0eEu";
  if (code_point >= 0x80) return kBeyondAscii;
  const std::size_t alone = kAlone.find(code_point);
  if (alone != std::u32string_view::npos) return CharacterClasses{1} << alone;
  int group = 0;  // the other control characters
  if (code_point >= '1' && code_point <= '9') group = 1;
  if (code_point >= 'a' && code_point <= 'f') group = 2;
  if (code_point >= 'g' && code_point <= 'z') group = 3;
  if (code_point >= 'A' && code_point <= 'F') group = 4;
  if (code_point >= 'G' && code_point <= 'Z') group = 5;
  if (code_point == 0x7F) group = 6;
  return CharacterClasses{1} << (kAlone.size() + static_cast<std::size_t>(group));
}

// The classes of a text's characters.
inline CharacterClasses character_classes(std::string_view text) {
  CharacterClasses classes = 0;
  while (!text.empty()) {
    const Utf8Prefix prefix = utf8_prefix(text);
    classes |= prefix.valid ? character_class(code_point_at(text, 0).value) : kBrokenCharacter;
    text.remove_prefix(static_cast<std::size_t>(prefix.num_bytes));
  }
  return classes;
}

}  // namespace kvasir::grammar
