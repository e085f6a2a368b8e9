// Halves of UTF-16 surrogate pairs in JSON texts.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kvasir {

// The JSON text with \ufffd, the replacement character, for each escape that is half of a surrogate pair, such as
// "\ud83d" alone: JSON.stringify of JavaScript and json.dumps of Python write it for a text that was cut within an
// emoji. Nothing: there is none.
std::optional<std::string> with_replaced_lone_surrogates(std::string_view json);

}  // namespace kvasir
