// From a conversation to the tokens the model reads.
#pragma once

#include <vector>

#include "kvasir/ids.h"
#include "kvasir/result.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace kvasir::text {

// Renders the model's template over `inputs`, in a form that it takes (see render_fitted), and tokenises the
// result. Where there are tools, it is the template for them. Control tokens come from the template only, never
// from a message, a tool or an extra value. The texts of BOS and EOS in `inputs` are filled in here. Errors: kUsage for what the template refuses, kUnmet for a limit of its rendering.
Result<std::vector<TokenId>> encode_chat(ChatTemplateInputs inputs, const ChatTemplate& chat_template,
                                         const Tokenizer& tokenizer);

}  // namespace kvasir::text
