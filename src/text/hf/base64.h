// Bytes written in base64 (RFC 4648).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kvasir::text::hf {

// Empty when a character is none of the alphabet; "=" at the end is optional.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace kvasir::text::hf
