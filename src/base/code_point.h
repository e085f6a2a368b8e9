// Code points of well-formed UTF-8 text; what is well-formed, base/utf8.h tells.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kvasir {

struct CodePoint {
  char32_t value = 0;
  std::size_t size_bytes = 0;
};

// Requires: text is well-formed and a character starts at position < text.size().
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
inline void append_utf8(std::string& text, char32_t code_point) {
  const auto append = [&](char32_t byte) { text.push_back(static_cast<char>(byte)); };
  const auto continuation = [&](int shift) { append(0x80 | (code_point >> shift & 0x3F)); };
  if (code_point < 0x80) {
    append(code_point);
  } else if (code_point < 0x800) {
    append(0xC0 | code_point >> 6);
    continuation(0);
  } else if (code_point < 0x10000) {
    append(0xE0 | code_point >> 12);
    continuation(6);
    continuation(0);
  } else {
    append(0xF0 | code_point >> 18);
    continuation(12);
    continuation(6);
    continuation(0);
  }
}

}  // namespace kvasir
