// Text cut into windows of tokens, the way quality is measured on it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "kvasir/ids.h"
#include "kvasir/result.h"
#include "text/tokenizer.h"

namespace kvasir::eval {

// The text is tokenised without BOS and cut into windows of `ctx_tokens`; what is left at the end is dropped.
// Where the model adds BOS it replaces the first token of each window. At most `max_windows` (0: all). Error
// (kUnmet) when the text is shorter than one window.
Result<std::vector<std::vector<TokenId>>> cut_windows(const text::Tokenizer& tokenizer, std::string_view text,
                                                      std::int32_t ctx_tokens, std::int32_t max_windows);

// The same of a text that is tokenised.
Result<std::vector<std::vector<TokenId>>> cut_windows(const text::Tokenizer& tokenizer, std::span<const TokenId> ids,
                                                      std::int32_t ctx_tokens, std::int32_t max_windows);

}  // namespace kvasir::eval
