// Conversations that come as JSON.
#pragma once

#include <string_view>

#include "kvasir/result.h"
#include "text/chat_template.h"

namespace kvasir::text {

// `messages` is an array of objects with a role and a content, `tools` an array and `template_kwargs` an
// object; the last two may be empty texts. They reach the template as they are; an
// assistant's missing content is empty. Errors (kUsage) name what is wrong: JSON, a type, a missing role or
// content, a variable that has a place of its own.
Result<ChatTemplateInputs> read_chat(std::string_view messages, std::string_view tools,
                                     std::string_view template_kwargs);

}  // namespace kvasir::text
