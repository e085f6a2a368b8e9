// UTF-8 validity (RFC 3629): no overlong forms, no surrogates, nothing above U+10FFFF.
#pragma once

#include <string>
#include <string_view>

namespace kvasir {

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

// The first bytes of a text: a whole character, or the longest start of one before it went wrong (at least 1
// byte), which one U+FFFD stands for (Unicode 15, section 3.9, "maximal subpart").
struct Utf8Prefix {
  int num_bytes = 0;
  bool valid = false;
};

// Requires: `text` is not empty.
Utf8Prefix utf8_prefix(std::string_view text);

bool is_valid_utf8(std::string_view text);

// Copies `text`, with U+FFFD for each maximal invalid piece.
std::string to_valid_utf8(std::string_view text);

}  // namespace kvasir
