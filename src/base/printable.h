// Text of unknown origin made safe for a one-line message.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kvasir {

// `text` with control characters and bytes that are not UTF-8 as \xNN, cut after `max_bytes` (then it ends
// with "..."). The result has no line break and no terminal escape, whatever the input.
std::string printable(std::string_view text, std::size_t max_bytes = 80);

// The same with room for the path of a file, or for a sentence that quotes such text.
inline std::string printable_line(std::string_view text) { return printable(text, 300); }

}  // namespace kvasir
