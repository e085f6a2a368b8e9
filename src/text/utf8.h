// Reading UTF-8 one character at a time, and making any bytes well-formed.
// All functions are pure and take time linear in their input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace kvasir::text {

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

// What stands at one position of a byte string (Unicode 15.1, section 3.9, table 3-7).
struct Utf8Unit {
  enum class Kind : std::uint8_t {
    kCharacter,   // one well-formed character
    kInvalid,     // bytes no character can start with: overlong forms and surrogates included
    kIncomplete,  // the string ends inside what may still become a character
  };
  Kind kind = Kind::kInvalid;
  std::size_t size_bytes = 0;  // of the character, or of the longest run that one U+FFFD replaces
  char32_t code_point = 0;     // of a character
};

// Requires: position < bytes.size().
Utf8Unit utf8_unit_at(std::string_view bytes, std::size_t position);

struct CodePoint {
  char32_t value = 0;
  std::size_t size_bytes = 0;
};

// The fast reader for text already known to be well-formed. Requires: position < text.size() is the
// start of a character.
inline CodePoint code_point_at(std::string_view text, std::size_t position) {
  const auto byte = [&](std::size_t i) {
    return static_cast<char32_t>(static_cast<unsigned char>(text[position + i]));
  };
  const char32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  if (lead < 0xE0) return {(lead & 0x1F) << 6 | (byte(1) & 0x3F), 2};
  if (lead < 0xF0) return {(lead & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F), 3};
  return {(lead & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F), 4};
}

// Appends the UTF-8 form of a code point. Requires: code_point <= 0x10FFFF and no surrogate.
void append_utf8(std::string& text, char32_t code_point);

// The text with one U+FFFD for every byte that is not part of a well-formed character.
std::string replace_invalid_bytes(std::string_view bytes);

}  // namespace kvasir::text
