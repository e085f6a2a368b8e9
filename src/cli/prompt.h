// The user's question as the token ids that the model was trained to see.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kvasir/engine.h"
#include "text/chat_template.h"

namespace kvasir::cli {

// The conversation through the model's chat template. Requires: the engine has a tokenizer and a template.
// Errors (kUsage, kUnmet): what the template refuses.
Result<std::vector<TokenId>> encode_conversation(const Engine& engine,
                                                 std::span<const text::ChatMessage> messages);

// The text itself, for a model that continues it. With `parse_special` control tokens in it mean themselves.
// Requires: the engine has a tokenizer.
std::vector<TokenId> encode_raw(const Engine& engine, std::string_view text, bool parse_special);

}  // namespace kvasir::cli
