// Integers of JSON that no type of 64 bits holds.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kvasir {

// The JSON text with "e0" behind each integer beyond 64 bits, which makes it a number with a fraction, as other
// parsers read it. Nothing: there is none.
std::optional<std::string> with_oversized_integers_as_fractions(std::string_view json);

}  // namespace kvasir
