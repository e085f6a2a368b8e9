// From a conversation to the tokens the model reads.
#pragma once

#include <vector>

#include "kvasir/ids.h"
#include "server/openai/chat_request.h"
#include "text/template/chat_template.h"
#include "text/tokenizer.h"

namespace kvasir::server {

// Renders the model's template and tokenises the result; control tokens come from the template only, never
// from a message. Errors (400): what the template refuses, a limit of its rendering.
ApiResult<std::vector<TokenId>> chat_prompt(const ChatRequest& request,
                                            const text::ChatTemplate& chat_template,
                                            const text::Tokenizer& tokenizer);

}  // namespace kvasir::server
