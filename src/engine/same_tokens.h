// Whether two models have the same tokens.
#pragma once

#include <string_view>

#include "kvasir/result.h"
#include "text/tokenizer.h"

namespace kvasir {

// Compares the ids that both have: a padding of other length at the end is no difference. Without a tokenizer there is nothing
// to compare. Error (kUsage): it begins with `name`, and says the first token that is another one.
Status check_same_tokens(std::string_view name, const text::Tokenizer* own, const text::Tokenizer* model);

}  // namespace kvasir
