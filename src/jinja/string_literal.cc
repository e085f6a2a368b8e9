#include "jinja/string_literal.h"

#include <fmt/format.h>

#include <charconv>

#include "base/code_point.h"

namespace kvasir::jinja {
namespace {

std::size_t num_hex_digits(char escape) {
  switch (escape) {
    case 'x':
      return 2;
    case 'u':
      return 4;
    case 'U':
      return 8;
    default:
      return 0;
  }
}

// The character of a one-letter escape, 0 when there is none.
char simple_escape(char escape) {
  constexpr std::string_view kLetters = "\\'\"abfnrtv";
  constexpr std::string_view kCharacters = "\\'\"\a\b\f\n\r\t\v";
  const std::size_t index = kLetters.find(escape);
  return index == std::string_view::npos ? '\0' : kCharacters[index];
}

Status append_numbered(std::string_view digits, int base, std::string& out) {
  std::uint32_t code = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code, base);
  if (error != std::errc{} || end != digits.data() + digits.size() || code > 0x10FFFF ||
      (code >= 0xD800 && code < 0xE000)) {
    return make_error(ErrorKind::kBadFile,
                      fmt::format("the escape with digits '{}' is no character", digits));
  }
  append_utf8(out, code);
  return {};
}

}  // namespace

Result<std::string> unescape_string(std::string_view literal) {
  std::string out;
  for (std::size_t i = 0; i < literal.size(); ++i) {
    if (literal[i] != '\\' || i + 1 == literal.size()) {
      out += literal[i];
      continue;
    }
    const char escape = literal[++i];
    if (escape == '\n') continue;
    if (const char simple = simple_escape(escape)) {
      out += simple;
    } else if (const std::size_t size = num_hex_digits(escape)) {
      const std::string_view digits = literal.substr(i + 1, size);
      if (digits.size() < size) return make_error(ErrorKind::kBadFile, "an escape in a string is cut short");
      KVASIR_CHECKED(append_numbered(digits, 16, out));
      i += size;
    } else if (escape >= '0' && escape <= '7') {
      std::size_t end = i + 1;
      while (end < literal.size() && end < i + 3 && literal[end] >= '0' && literal[end] <= '7') ++end;
      KVASIR_CHECKED(append_numbered(literal.substr(i, end - i), 8, out));
      i = end - 1;
    } else if (escape == 'N') {
      return make_error(ErrorKind::kBadFile, "\\N escapes are not supported");
    } else {
      out += '\\';
      out += escape;
    }
  }
  return out;
}

}  // namespace kvasir::jinja
