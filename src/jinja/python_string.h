// Python's str on UTF-8: character properties, case, searching and slicing by code point.
// All functions take well-formed UTF-8 and run in time linear in their input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kvasir::jinja {

// Bits of char_properties(), as scripts/make_python_string_tables.py writes them.
enum CharProperty : std::uint16_t {
  kAlphabetic = 1,
  kDecimal = 2,
  kDigit = 4,
  kNumeric = 8,
  kSpace = 16,
  kPrintable = 32,
  kUppercase = 64,
  kLowercase = 128,
  kTitlecase = 256,
  kCaseIgnorable = 512,
};
inline constexpr std::uint16_t kCased = kUppercase | kLowercase | kTitlecase;

std::uint16_t char_properties(char32_t code_point);
inline bool has_property(char32_t code_point, std::uint16_t mask) {
  return (char_properties(code_point) & mask) != 0;
}

std::string to_upper(std::string_view text);
std::string to_lower(std::string_view text);
// str.title: a capital after every character without case.
std::string to_title(std::string_view text);
// str.capitalize: the first character in title case, the rest lower.
std::string capitalized(std::string_view text);

std::string_view strip_whitespace_left(std::string_view text);
std::string_view strip_whitespace_right(std::string_view text);
std::string_view strip_whitespace(std::string_view text);

// Byte offset of the first / last occurrence; linear in haystack + needle (plain find is not).
std::optional<std::size_t> find_bytes(std::string_view haystack, std::string_view needle,
                                      std::size_t from = 0);
std::optional<std::size_t> rfind_bytes(std::string_view haystack, std::string_view needle);

// str.count: occurrences that do not overlap.
std::size_t count_occurrences(std::string_view text, std::string_view needle);
// str.splitlines without the line ends.
std::vector<std::string_view> split_lines(std::string_view text);

std::size_t num_code_points(std::string_view text);
// Byte offset of the code point at `index`, text.size() beyond the end.
std::size_t byte_offset(std::string_view text, std::size_t index);
// Every code point as its own view.
std::vector<std::string_view> characters(std::string_view text);

// &, <, >, ' and " as character references.
std::string escape_html(std::string_view text);

}  // namespace kvasir::jinja
