// Tokens that stand for one byte: "<0x41>" is the byte 0x41.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "kvasir/ids.h"
#include "text/vocab.h"

namespace kvasir::text {

// Empty when the text is no such token.
std::optional<char> parse_byte_token(std::string_view text);

// The token of each of the 256 bytes, kNoToken for those without one.
std::vector<TokenId> find_byte_tokens(const Vocab& vocab);

// Appends the tokens of all bytes, or nothing and false when one has none. `byte_tokens` has 256 entries or none.
bool append_byte_tokens(const std::vector<TokenId>& byte_tokens, std::string_view bytes,
                        std::vector<TokenId>& ids);

}  // namespace kvasir::text
