// A conversation through a chat template, in the first form that the template shows whole.
#pragma once

#include "jinja/traced_text.h"
#include "kvasir/result.h"
#include "text/chat_template.h"

namespace kvasir::text {

// Templates refuse much: a system message that is not the first, roles that do not alternate, contents that are
// text or that are parts, tools. The conversation goes in as it came; where the template raises an error, or
// leaves out what the system, the user or a tool says, other forms are tried in a fixed order (see
// ConversationForm), the least changed first. If none is shown whole, the first that renders counts. All that
// `inputs` says is foreign to the template. Errors: the template's for the conversation as it came.
Result<jinja::TracedText> render_fitted(const ChatTemplateInputs& inputs, const ChatTemplate& chat_template);

}  // namespace kvasir::text
