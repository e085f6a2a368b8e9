// How a grammar finds the tokens that it names.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "kvasir/ids.h"

namespace kvasir::grammar {

// Made by whoever has the tokenizer.
struct TokenNames {
  // The one token that a text such as "<think>" is, control tokens included; empty: names are not known.
  std::function<std::optional<TokenId>(std::string_view)> find = {};
  std::int32_t num_tokens = 0;  // of the vocabulary; ids are below it
};

}  // namespace kvasir::grammar
