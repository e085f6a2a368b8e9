// The known name that a mistyped one most likely meant.
#pragma once

#include <span>
#include <string_view>

namespace kvasir {

// By edit distance with transpositions (Damerau 1964, optimal string alignment). Empty when no candidate is
// within a third of the name's length, at least one edit. The first of equals wins.
std::string_view nearest_name(std::string_view name, std::span<const std::string_view> candidates);

}  // namespace kvasir
