// The printable alphabet in which GPT-2 style vocabularies write bytes: "Ġ" stands for a space.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kvasir::text {

// The bytes that a token text stands for; empty when a character is not in the alphabet (then the text
// is meant literally, as in added tokens).
std::optional<std::string> decode_byte_alphabet(std::string_view text);

// The bytes as byte-level vocabularies write them: " a" is "Ġa".
std::string encode_byte_alphabet(std::string_view bytes);

}  // namespace kvasir::text
