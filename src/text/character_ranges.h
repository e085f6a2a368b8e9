// Sets of characters in a regular expression's own notation.
#pragma once

#include <string_view>

#include "base/code_point.h"

namespace kvasir::text {

// Whether a class such as "a-zµ" holds the character.
inline bool in_ranges(std::string_view ranges, char32_t code_point) {
  for (std::size_t at = 0; at < ranges.size();) {
    const auto [first, first_bytes] = code_point_at(ranges, at);
    at += first_bytes;
    char32_t last = first;
    if (at + 1 < ranges.size() && ranges[at] == '-') {
      const auto [end, end_bytes] = code_point_at(ranges, at + 1);
      last = end;
      at += 1 + end_bytes;
    }
    if (code_point >= first && code_point <= last) return true;
  }
  return false;
}

// \p{Han}
inline constexpr std::string_view kHan =
    "\u2E80-\u2E99\u2E9B-\u2EF3\u2F00-\u2FD5\u3005\u3007\u3021-\u3029\u3038-\u303B\u3400-\u4DBF\u4E00-\u9FFF"
    "\uF900-\uFA6D\uFA70-\uFAD9\U00016FE2-\U00016FE3\U00016FF0-\U00016FF1\U00020000-\U0002A6DF"
    "\U0002A700-\U0002EBE0\U0002EBF0-\U0002EE5D\U0002F800-\U0002FA1D\U00030000-\U0003134A"
    "\U00031350-\U000323AF";

}  // namespace kvasir::text
