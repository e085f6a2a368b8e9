// Classes of characters that the parts of a grammar usually tell apart.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
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

namespace character_class_table {

constexpr std::uint8_t class_of(char32_t code_point) {
  constexpr std::u32string_view kAlone = U" \t\n\r!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~0eEu";
  const std::size_t alone = kAlone.find(code_point);
  if (alone != std::u32string_view::npos) return static_cast<std::uint8_t>(alone);
  std::size_t group = 0;  // the other control characters
  if (code_point >= '1' && code_point <= '9') group = 1;
  if (code_point >= 'a' && code_point <= 'f') group = 2;
  if (code_point >= 'g' && code_point <= 'z') group = 3;
  if (code_point >= 'A' && code_point <= 'F') group = 4;
  if (code_point >= 'G' && code_point <= 'Z') group = 5;
  if (code_point == 0x7F) group = 6;
  return static_cast<std::uint8_t>(kAlone.size() + group);
}

inline constexpr std::array<std::uint8_t, 128> kTable = [] {
  std::array<std::uint8_t, 128> table{};
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = class_of(static_cast<char32_t>(i));
  return table;
}();

}  // namespace character_class_table

inline constexpr std::size_t kNumAsciiClasses = 47;
static_assert(kNumAsciiClasses == 1 + *std::ranges::max_element(character_class_table::kTable));

// Requires: code_point < 0x80. The result is less than kNumAsciiClasses.
constexpr std::size_t ascii_class(char32_t code_point) { return character_class_table::kTable[code_point]; }

constexpr CharacterClasses character_class(char32_t code_point) {
  return code_point >= 0x80 ? kBeyondAscii : CharacterClasses{1} << ascii_class(code_point);
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
