// Requests that models decline, secrets of a system prompt, and tools; behind a long text.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "eval/gate/open_answers.h"
#include "text/chat_template.h"

namespace kvasir::eval {

// A conversation as tokens; `tools` is a JSON array or empty.
using EncodeConversation =
    std::function<Result<std::vector<TokenId>>(std::span<const text::ChatMessage> messages, std::string_view tools)>;
// The n-th piece of the long text.
using LongText = std::function<std::string(std::int32_t n)>;

// The n-th question is always the same. Errors: as `encode`.
Result<std::vector<OpenQuestion>> questions_to_decline(const EncodeConversation& encode, const LongText& text,
                                                       std::int32_t num_questions);
Result<std::vector<OpenQuestion>> questions_for_secrets(const EncodeConversation& encode, const LongText& text,
                                                        std::int32_t num_questions);
Result<std::vector<OpenQuestion>> questions_for_tools(const EncodeConversation& encode, const LongText& text,
                                                      std::int32_t num_questions);

}  // namespace kvasir::eval
