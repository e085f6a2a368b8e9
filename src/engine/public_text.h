// Texts that an operator marks public, as the beginnings of prompts that they become.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "kvasir/ids.h"
#include "kvasir/result.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace kvasir {

// Of each text the tokens that every prompt has which begins with it, and, with a chat template, those that
// every conversation has whose system message it is. What would be empty is left out: the template may take
// no system message. Error (kUsage) when there are texts and no tokenizer.
Result<std::vector<std::vector<TokenId>>> public_prefixes_of(std::span<const std::string> texts,
                                                             const text::Tokenizer* tokenizer,
                                                             const text::ChatTemplate* chat_template);

}  // namespace kvasir
