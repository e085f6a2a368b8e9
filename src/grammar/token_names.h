// How a grammar finds the tokens that it names.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "kvasir/ids.h"

namespace kvasir::grammar {

// Made by whoever has the tokenizer.
struct TokenNames {
  // The one token that a text such as "<think>" is, control tokens included; empty: names are not known.
  std::function<std::optional<TokenId>(std::string_view)> find = {};
  std::int32_t num_tokens = 0;  // of the vocabulary; ids are below it
  // Whether a client sees text of a token, as of no control token; empty: not known.
  std::function<bool(TokenId)> has_text = {};
};

// A grammar lists no more tokens than this where it names those that it does not want.
inline constexpr std::size_t kMaxOtherTokens = 1'000'000;

// All tokens with text but these. Requires: has_text; `excluded` ascends.
inline std::vector<TokenId> other_tokens(const TokenNames& names, std::span<const TokenId> excluded) {
  std::vector<TokenId> tokens;
  for (TokenId token = 0; token < names.num_tokens; ++token) {
    if (names.has_text(token) && !std::ranges::binary_search(excluded, token)) tokens.push_back(token);
  }
  return tokens;
}

}  // namespace kvasir::grammar
