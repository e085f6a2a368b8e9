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

// The tokens that every prompt has which begins with one of the texts. With a chat template, also those that
// every conversation has whose system message is the text. Empty prefixes are left out: the template may take
// no system message. Error (kUsage) when there are texts and no tokenizer.
Result<std::vector<std::vector<TokenId>>> public_prefixes_of(std::span<const std::string> texts,
                                                             const text::Tokenizer* tokenizer,
                                                             const text::ChatTemplate* chat_template);

}  // namespace kvasir
