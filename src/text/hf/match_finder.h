// Finds the places in a text that a pattern, a string or a class of characters matches.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace kvasir::text::hf {

using VisitMatch = std::function<void(std::size_t begin, std::size_t end)>;

// Calls visit for every match in order; matches do not overlap and none is empty. Any thread may call it. Requires:
// text is well-formed UTF-8.
using MatchFinder = std::function<void(std::string_view text, const VisitMatch& visit)>;

// Every place where the string stands. Requires: `wanted` is not empty.
MatchFinder find_text(std::string wanted);
// Every character of a class.
MatchFinder find_characters(bool (*is_wanted)(char32_t code_point));

}  // namespace kvasir::text::hf
