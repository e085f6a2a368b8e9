// Lists of the form that the W3C's headers have: members between commas, with blanks around.
#pragma once

#include <algorithm>
#include <string_view>

namespace kvasir::server::observe {

inline std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

// Takes the first member from the list; empty members are allowed.
inline std::string_view take_member(std::string_view& list) {
  const std::string_view member = list.substr(0, list.find(','));
  list.remove_prefix(std::min(list.size(), member.size() + 1));
  return trimmed(member);
}

}  // namespace kvasir::server::observe
