// Numbers in groups of three digits, counted from their ends.
#pragma once

#include <functional>
#include <string_view>

namespace kvasir::text {

using VisitWord = std::function<void(std::string_view)>;

// \d{1,3}(?=(?:\d{3})*\b): groups of numbers that end a word, and what lies between them, in order.
void visit_grouped_digits(std::string_view text, const VisitWord& group, const VisitWord& between);

// \p{N}+ and in each (?=(\d{3})+(?!\d)): the groups, and what lies between numbers in one piece.
void visit_grouped_numbers(std::string_view text, const VisitWord& visit);

}  // namespace kvasir::text
